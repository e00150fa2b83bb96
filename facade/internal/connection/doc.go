// Not part of the public API.
//
// Package connection finds the cluster of a program and configures the connection to it. [Login], [FromKubeconfig] and
// [FromServiceAccount] return credentials, and [Configuration.Apply] sets timeouts and proxies. It never sends a
// request.
//
// If a project makes its own manager, none of this is used. Package commandline makes a manager with it. The durations
// of requests belong to package reconcilers/internal/transport.
package connection
