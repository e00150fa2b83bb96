// Not part of the public API.
//
// Package credentials keeps a connection to the API server authorized while credentials expire and are replaced.
// [Connect] logs in and returns a configuration for clients; [ConnectLazily] logs in with the first request. A request
// that is refused because of its credentials waits for a new login and is sent again, without any effect on its caller.
//
// [Login], [FromKubeconfig] and [FromServiceAccount] find the cluster of a program and return its credentials. They
// send no request. [Configuration.Apply] sets timeouts and proxies of connections.
//
// It repeats requests for no other reason. If a project makes its own manager, none of this is used. Package serving
// makes a manager with the connection, and package facade calls the login handlers. The durations of requests belong to
// package internal/transport.
package credentials
