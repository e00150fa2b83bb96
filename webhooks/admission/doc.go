// Not part of the public API.
//
// Package admission connects the parts of admission for one operator.
//
// An [WebhookServer] finds the resources of the handlers, creates the HTTP server, and maintains the webhook
// configurations. It decides the order in which these parts start and stop. [Options.ConfigurationObjects] returns the
// configurations for printing. The files conditions*.go translate filters to CEL.
//
// The parts are in the other packages of webhooks: review answers requests, internal/server serves HTTP, configurations
// writes the entries, certificates and tunnels provide TLS and the address. This package never decides about a request.
// Package internal/handlers describes filters, and package facade fills in the options and adds the Admission to
// the manager.
package admission
