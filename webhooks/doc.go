// Not part of the public API.
//
// Package webhooks is the folder of admission, without code of its own. Package review turns a request into a response,
// internal/server serves it over HTTP, configurations registers the webhooks in the cluster, tunnels makes the server
// reachable, certificates creates the certificates for both, and admission sets all of it up.
//
// Neighbours: reconcilers/handlers describes the handlers, reconcilers/adapters makes their calls, and facade has the
// verbs.
package webhooks
