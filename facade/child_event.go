package kopf

import "sigs.k8s.io/controller-runtime/pkg/client"

// ChildEvent is what happened to a child of one object, as one handler gets it. See [Change] for what it has in common
// with changes.
type ChildEvent[T, C client.Object] struct {
	// Type is what happened.
	Type WatchEventType
	// Child is how the child is by now, or was at last. It is the handler's own copy.
	Child C
	// Object is the owner.
	Object T
	// ID is the handler's.
	ID string
	// Retry counts the calls of this handler for the child since it succeeded last: 0 at the first one.
	Retry int
	// Client reads and writes other objects, Live reads past all caches: see [Change].
	Client    client.Client
	APIReader client.Reader

	change *Change[T]
}

// Patch changes the owner, see [Change.Patch]: it is written when the handler has returned.
func (e *ChildEvent[T, C]) Patch(change func(object T)) { e.change.Patch(change) }

// TryPatch is Patch with a function that may fail, see [Change.TryPatch].
func (e *ChildEvent[T, C]) TryPatch(change func(object T) error) { e.change.TryPatch(change) }

// GetObject returns e.Object, for functions that take a [Call].
func (e *ChildEvent[T, C]) GetObject() T { return e.Object }

// Latest is the newest state of the owner that is known by now, see [Change.Latest].
func (e *ChildEvent[T, C]) Latest() T { return e.change.Latest() }

// Resource is what the owner is one of, see [Change.Resource].
func (e *ChildEvent[T, C]) Resource() Resource { return e.change.Resource() }

// SetResult sets what is written to status.<id> of the owner, see [Change.SetResult].
func (e *ChildEvent[T, C]) SetResult(value any) { e.change.SetResult(value) }

// RawResult is what a handler has left in status.<id> of the owner, see [Result].
func (e *ChildEvent[T, C]) RawResult(id string) (any, error) { return e.change.RawResult(id) }

// Adopt makes children of the owner before they are created, see [Change.Adopt].
func (e *ChildEvent[T, C]) Adopt(children ...any) error { return e.change.Adopt(children...) }

// Info posts a Kubernetes event of the type Normal about the owner, see [Change.Event].
func (e *ChildEvent[T, C]) Info(reason, message string) { e.change.Info(reason, message) }

// Warn posts a Kubernetes event of the type Warning about the owner, see [Change.Event].
func (e *ChildEvent[T, C]) Warn(reason, message string) { e.change.Warn(reason, message) }

// Event posts a Kubernetes event of any type about the owner, see [Change.Event].
func (e *ChildEvent[T, C]) Event(eventType, reason, message string) {
	e.change.Event(eventType, reason, message)
}

// Exception posts a Kubernetes event about an error, see [Change.Exception].
func (e *ChildEvent[T, C]) Exception(reason, message string, err error) {
	e.change.Exception(reason, message, err)
}

// About posts Kubernetes events about other objects, see [Change.EventRecorderFor].
func (e *ChildEvent[T, C]) EventRecorderFor(objects ...any) EventRecorder {
	return e.change.EventRecorderFor(objects...)
}
