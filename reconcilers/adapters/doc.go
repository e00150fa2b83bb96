// Not part of the public API.
//
// Package adapters turns each registered handler into a Reconciler of attempts: its function, wrapped by adapters, one
// concern in each file. [New] makes the Reconciler, [Select] chooses handlers for an object, and [HandlerChain.Start]
// runs one attempt. chains.go lists the adapters of each family.
//
// Everything that Kopf promises around a call is an adapter: detecting the cause from the last-handled essence,
// filtering, continuing from the stored progress, limits, logging, metrics, error classes, recovery. The same chain
// also answers whether the function would be called, so calls and decisions cannot differ.
//
// Adapters never write to the API server. The attempt and the rules of outcomes are in internal/execution. Packages
// changes, events, background and indexes call the Reconcilers.
package adapters
