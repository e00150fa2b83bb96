package kopf

import "sigs.k8s.io/controller-runtime/pkg/client"

// Call is what the arguments of all handlers of objects have in common: [Change], [Task], [WatchEvent], [ChildEvent]
// and [Admission]. Functions that several handlers share take it:
//
//	func rename[T client.Object](c kopf.Call[T], name string) {
//		c.Patch(func(object T) { object.SetName(name) })
//	}
type Call[T client.Object] interface {
	// GetObject returns the field Object.
	GetObject() T
	// Latest returns the newest known state as a copy, see [Change.Latest].
	Latest() T
	// Resource describes the kind of the object, see [Change.Resource].
	Resource() Resource
	// Patch changes the object in the cluster, see [Change.Patch].
	Patch(change func(object T))
	// TryPatch is Patch with a function that can fail, see [Change.TryPatch].
	TryPatch(change func(object T) error)
}

// Results are the results of handlers in the status of their object, for [Result]. [Change], [Task], [WatchEvent] and
// [ChildEvent] implement it.
type Results interface {
	// SetResult sets the result of the handler, see [Change.SetResult].
	SetResult(value any)
	// RawResult returns the result of a handler as JSON values, see [Result].
	RawResult(id string) (any, error)
}

var (
	_ Call[*Unstructured] = (*Change[*Unstructured])(nil)
	_ Call[*Unstructured] = (*Task[*Unstructured])(nil)
	_ Call[*Unstructured] = (*WatchEvent[*Unstructured])(nil)
	_ Call[*Unstructured] = (*ChildEvent[*Unstructured, *Unstructured])(nil)
	_ Call[*Unstructured] = (*Admission[*Unstructured])(nil)
	_ Results             = (*Change[*Unstructured])(nil)
	_ Results             = (*Task[*Unstructured])(nil)
	_ Results             = (*WatchEvent[*Unstructured])(nil)
	_ Results             = (*ChildEvent[*Unstructured, *Unstructured])(nil)
)
