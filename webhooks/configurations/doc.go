// Not part of the public API.
//
// Package configurations is what a cluster is told about admission: the
// entries of ValidatingWebhookConfiguration and MutatingWebhookConfiguration.
// [Validating] and [Mutating] make them from the handlers, with neither a
// cluster nor a clock: names, rules, selectors, and where requests are sent. A
// [Writer] keeps them in the two objects, among those of other operators, by
// server-side apply.
//
// It stands apart because an entry is about which requests come, and never about
// what is answered: it knows handlers by what is said of them, and no function
// of theirs. It never serves anything, and never decides where the server is:
// that comes in as a client configuration. Its neighbours are
// reconcilers/discovery below it, whose resources the rules are made of, and
// webhooks/internal/server, which serves the paths that the entries name.
package configurations
