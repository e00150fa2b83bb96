// Not part of the public API.
//
// Package registry holds the handlers of an operator from their registration until the set-up.
//
// The verbs of package facade register into a [HandlerRegistry]. The verbs do not return errors, so the registry keeps
// the mistakes with file and line. [HandlerRegistry.BuildPlan] resolves the kinds by the scheme, and checks the handlers
// against each other: ids, former ids, records and conditions. The package depends neither on the operator nor on a
// manager.
//
// The options of the verbs and the Go types of objects belong to package facade.
package registry
