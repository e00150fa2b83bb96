// Not part of the public API.
//
// Package memory stores the state of the objects of one kind in one namespace between their passes. [Registry] has one
// [ScopeMemory] for each kind and namespace; [Objects] holds the objects of a scope.
//
// The state outlives the controllers. A kind that is served again does not run resume handlers twice, does not repeat
// work that cannot be derived from the object, and recognizes its own writes before the cache has them. Everything is
// lost with the process; state that must survive is stored on the objects. The package never calls the API or a
// handler.
//
// Package changes defines the state that a pass leaves behind. Package controller runs the passes.
package memory
