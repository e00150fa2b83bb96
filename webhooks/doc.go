// Package webhooks is the place for admission: an endpoint for every validating
// and mutating handler on the manager's webhook server, the webhook
// configurations that send requests to these, and the certificates for both.
// None of it is here yet: the package has no exports, no endpoint is served and
// no configuration is written.
//
// It stands apart because a review has neither a queue nor a memory nor
// retries: one request, one answer. It never writes to the object under review;
// what handlers want changed goes back as the answer's patch. Its neighbours
// are reconcilers/handlers, where handlers are selected, reconcilers/patching,
// which turns their changes into operations, and certs below it.
package webhooks
