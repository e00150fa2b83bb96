package kopf

import "sigs.k8s.io/controller-runtime/pkg/client"

// ChildEvent is the argument of a handler of [OnChild]. Its methods are those of [Change], for the owner.
type ChildEvent[T, C client.Object] struct {
	// Type of the event.
	Type WatchEventType
	// Child is a copy of the newest, or last, state of the child.
	Child C
	// Object is the owner.
	Object T
	// ID is the handler id.
	ID string
	// Retry is the number of attempts since the handler last succeeded for the child.
	Retry int
	// See [Change].
	Client    client.Client
	APIReader client.Reader

	change *Change[T]
}

// Patch is [Change.Patch].
func (e *ChildEvent[T, C]) Patch(change func(object T)) { e.change.Patch(change) }

// TryPatch is [Change.TryPatch].
func (e *ChildEvent[T, C]) TryPatch(change func(object T) error) { e.change.TryPatch(change) }

// GetObject returns the owner.
func (e *ChildEvent[T, C]) GetObject() T { return e.Object }

// Latest is [Change.Latest].
func (e *ChildEvent[T, C]) Latest() T { return e.change.Latest() }

// Resource is [Change.Resource].
func (e *ChildEvent[T, C]) Resource() Resource { return e.change.Resource() }

// SetResult is [Change.SetResult].
func (e *ChildEvent[T, C]) SetResult(value any) { e.change.SetResult(value) }

// RawResult is [Change.RawResult].
func (e *ChildEvent[T, C]) RawResult(id string) (any, error) { return e.change.RawResult(id) }

// Adopt is [Change.Adopt].
func (e *ChildEvent[T, C]) Adopt(children ...any) error { return e.change.Adopt(children...) }

// Info is [Change.Info].
func (e *ChildEvent[T, C]) Info(reason, message string) { e.change.Info(reason, message) }

// Warn is [Change.Warn].
func (e *ChildEvent[T, C]) Warn(reason, message string) { e.change.Warn(reason, message) }

// Event is [Change.Event].
func (e *ChildEvent[T, C]) Event(eventType, reason, message string) {
	e.change.Event(eventType, reason, message)
}

// Exception is [Change.Exception].
func (e *ChildEvent[T, C]) Exception(reason, message string, err error) {
	e.change.Exception(reason, message, err)
}

// EventRecorderFor is [Change.EventRecorderFor].
func (e *ChildEvent[T, C]) EventRecorderFor(objects ...any) EventRecorder {
	return e.change.EventRecorderFor(objects...)
}
