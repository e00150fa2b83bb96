// Not part of the public API.
//
// Package owned connects parents with their children. [ChildSource] receives the events of children from their
// informer, [Route] those of the parents, and [ChildHandling] calls the handlers of a parent for its changed children.
// [Children] holds the state of both. [ChildWait] lets a handler wait for an object.
//
// The state is level-based: quick changes of a child count as one, and nothing is stored on the objects. The package
// does not list or watch anything itself. It uses the clock only for retries.
//
// Package controller feeds it with events of both kinds. Package events has the handlers of an object's own events.
package owned
