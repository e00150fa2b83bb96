// Not part of the public API.
//
// Package admission is the admission of one operator, made of its parts: from handlers, and from what is known of the
// cluster, it makes what is served, what is told to the cluster, and when.
//
// It is apart because each of the parts knows one thing, and none of the others: reviews, HTTP, configurations,
// certificates, tunnels. It decides the order in which they come up, and never anything about a request.
//
// Neighbours: the rooms of webhooks below it are the parts; reconcilers/requirements has what filters require; package
// facade above it fills in the options, and adds it to the manager.
package admission
