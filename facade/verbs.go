package kopf

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ChangeFunc is a function that handles a change of one object.
//
// # Flow
//
// All handlers of a change are called one after another, in the order of registration, each until it succeeds or fails
// for good. Then the change is over, and the present object is remembered as the one that was handled last.
//
// # Guarantees
//
// It is called at least once for a change, also for one made while the operator was down, and again after a crash until
// its success is written: so it must be idempotent. Two functions for one object are never called at once. How far each
// handler got is kept on the object, and survives restarts.
//
// # Errors
//
// Nil is a success. [Temporary] and [Permanent] say what they are, as does any error in the chain with a method
// RetryAfter() time.Duration or Permanent() bool; controller-runtime's TerminalError is permanent. Others mean what the
// option [Errors] says. A panic is an ordinary error. When the context ends, the function should return soon, with an
// error unless it is done: nil is a success. The error does not count if the operator is exiting.
type ChangeFunc[T client.Object] func(ctx context.Context, c *Change[T]) error

// OnCreate registers a handler for objects that were never handled before, whether new or not. Kopf: on.create.
//
// The id is what the progress and the result are kept under on the object: status.<id>, and the annotation
// "<operator>/<id>" while the handler is unfinished. It must not change as long as such objects are around, and is
// unique among the handlers of this verb and kind. The same id may stand under several verbs, see On.
func (s Selection[T]) OnCreate(id string, fn ChangeFunc[T], opts ...changeOption) {
	register(s, function[T]{"OnCreate", id, fn}, asOptions(opts), ReasonCreate)
}

// OnUpdate registers a handler for objects that differ from what was handled last. Kopf: on.update.
func (s Selection[T]) OnUpdate(id string, fn ChangeFunc[T], opts ...updateOption) {
	register(s, function[T]{"OnUpdate", id, fn}, asOptions(opts), ReasonUpdate)
}

// OnDelete registers a handler for objects that are being deleted. Its finalizer holds them until the handler has
// succeeded, or failed for good, unless it is [Optional]. Kopf: on.delete.
func (s Selection[T]) OnDelete(id string, fn ChangeFunc[T], opts ...deleteOption) {
	register(s, function[T]{"OnDelete", id, fn}, asOptions(opts), ReasonDelete)
}

// OnResume registers a handler for objects that were there when the operator started: it is called once for each, in
// addition to the handlers of what has happened to it meanwhile. It is not called for new objects. Kopf: on.resume.
func (s Selection[T]) OnResume(id string, fn ChangeFunc[T], opts ...resumeOption) {
	register(s, function[T]{"OnResume", id, fn}, asOptions(opts), ReasonResume)
}
