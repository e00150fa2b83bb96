package kopf

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ChangeFunc handles one change of one object. The handlers run one after another until each has succeeded or failed
// permanently. Then the object becomes the last-handled configuration.
//
// Each change is handled at least once, also after a crash or a downtime of the operator, so the function must be
// idempotent. It never runs concurrently for one object.
//
// # Errors
//
// Nil is success. [Temporary], [Permanent] and reconcile.TerminalError decide about retries, as do methods RetryAfter()
// time.Duration and Permanent() bool. Other errors and panics follow the option [Errors]. If ctx ends before the work
// is done, return an error.
type ChangeFunc[T client.Object] func(ctx context.Context, c *Change[T]) error

// OnCreate registers a handler for objects that were never handled before. Kopf: on.create.
//
// The id names the result, status.<id>, and the stored progress. It is unique for the verb and kind. [FormerIDs]
// renames it.
func (s Selection[T]) OnCreate(id string, fn ChangeFunc[T], opts ...changeOption) {
	register(s, function[T]{"OnCreate", id, fn}, asOptions(opts), ReasonCreate)
}

// OnUpdate registers a handler for objects that differ from the last-handled configuration. Kopf: on.update.
func (s Selection[T]) OnUpdate(id string, fn ChangeFunc[T], opts ...updateOption) {
	register(s, function[T]{"OnUpdate", id, fn}, asOptions(opts), ReasonUpdate)
}

// OnDelete registers a handler for objects that are being deleted. A finalizer holds them until it has succeeded or
// failed permanently: see [Optional], [HoldOnFailure]. Kopf: on.delete.
func (s Selection[T]) OnDelete(id string, fn ChangeFunc[T], opts ...deleteOption) {
	register(s, function[T]{"OnDelete", id, fn}, asOptions(opts), ReasonDelete)
}

// OnResume registers a handler for each object that was handled before and exists when the operator starts, in addition
// to other handlers. Kopf: on.resume.
func (s Selection[T]) OnResume(id string, fn ChangeFunc[T], opts ...resumeOption) {
	register(s, function[T]{"OnResume", id, fn}, asOptions(opts), ReasonResume)
}
