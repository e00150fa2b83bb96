// Not part of the public API.
//
// Package registry holds the handlers that an operator registers, before their kinds are known.
//
// The verbs of package facade register into a [HandlerRegistry]. It keeps mistakes with file and line, because the
// verbs do not return errors. [HandlerRegistry.Plan] resolves the kinds by the scheme, and checks the handlers against
// each other: ids, former ids, records and conditions. Nothing here depends on the operator or on a manager.
//
// The options of the verbs and the Go types of objects belong to package facade.
package registry
