// Not part of the public API.
//
// Package configurations maintains the ValidatingWebhookConfiguration and the MutatingWebhookConfiguration of an
// operator.
//
// [ValidatingEntries] and [MutatingEntries] compute the entries from the handlers: names, rules, selectors and
// addresses. A [Writer] keeps the entries in the two objects by server-side apply, among those of other operators.
// [Records] stores the fingerprints of issued certificates there. [ConfigurationObjects] returns the objects for
// printing.
//
// The package decides which requests the API server sends, but not how they are answered: it has no functions of
// handlers. The address of the server comes from the caller. Package internal/discovery provides the resources of
// the rules, and webhooks/internal/server serves the paths of the entries.
package configurations
