// Not part of the public API.
//
// Package reviewing calls admission webhooks like an API server: it reads their configurations, selects the webhooks
// for a request, and applies their responses. [HooksOf] reads the configurations; [Reviews] handles the requests of an
// API server in memory. The caller provides the transport to a webhook: within the process, or by URL.
package reviewing
