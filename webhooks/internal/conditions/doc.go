// Not part of the public API.
//
// Package conditions says in CEL what filters of admission handlers demand, as the matchConditions of webhooks, so that
// an API server need not send requests that the operator would not call a handler for.
//
// It stands apart because it must agree with the filters, and with what API servers take, and with nothing else. What
// it cannot say exactly, it leaves out, so a condition is never false where the filters are true; it never decides what
// is asked. It knows no cluster and evaluates nothing.
//
// Neighbours: reconcilers/requirements below it has what filters require; webhooks/configurations has the
// entries that the conditions are in. facade/rules/agreement compares both sides.
package conditions
