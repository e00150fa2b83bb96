// Not part of the public API.
//
// Package handlers describes the registered functions of the user: when each is called, and which criteria an object
// must meet. Handler is the description of one function; Invocation is the argument of one call. A [Requirement]
// describes a filter as data, and [Words] explain filters to users.
//
// The package has one plain struct for all verbs, types and options, so that the engine, its logs and its tests do not
// depend on how a handler was registered. It does not call functions, and does not use generics or Kubernetes clients.
//
// Neighbours: internal/cause below it describes causes; internal/execution above it makes the attempts; facade
// fills the structs.
package handlers
