// Not part of the public API.
//
// Package credentials keeps a connection to the API server authorized while credentials expire and are replaced.
// [Connect] logs in and returns a configuration for clients; [ConnectLazily] logs in with the first request. A request
// that is refused because of its credentials waits for a new login and is sent again, without any effect on its caller.
//
// It does not decide where credentials come from, and it repeats requests for no other reason. Package connection reads
// credentials from kubeconfigs and service accounts. Package commandline makes a manager with the connection. Package
// facade calls the login handlers.
package credentials
