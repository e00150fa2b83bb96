// Not part of the public API.
//
// Package plainhttp is a webhook server of a manager without TLS, which that of controller-runtime always has: for
// proxies that end TLS before it.
//
// It is apart because nothing that matters for reviews is in it. It never looks into what it serves.
//
// Neighbours: package facade makes one for programs whose settings say so.
package plainhttp
