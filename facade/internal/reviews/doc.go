// Not part of the public API.
//
// Package reviews serves the admission handlers of an operator.
//
// A [ReviewServer] gets the [ReviewSettings] and the handlers of a plan. It finds a certificate and the way from the
// API server, registers the endpoints at the webhook server of a manager, and keeps or prints the webhook
// configurations. It also adds the handler that sets the finalizer on creations. It does not need an operator: a
// manager and a plan are enough.
//
// Endpoints, configurations and certificates themselves are in the packages below webhooks. The calls of the user's
// functions are in package facade.
package reviews
