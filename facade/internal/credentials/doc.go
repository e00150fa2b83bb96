// Not part of the public API.
//
// Package credentials keeps a connection to the API server authorized while credentials come and go.
//
// It is apart because nobody above it is to notice: a request that is refused for its credentials waits for a login,
// and is sent again. It never decides where credentials come from, and never repeats a request for another reason.
//
// Neighbours: package connection reads credentials of kubeconfigs and of service accounts; package commandline has a
// manager made with the connection; package facade calls the handlers of logins.
package credentials
