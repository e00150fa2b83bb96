package kopf

import "sigs.k8s.io/controller-runtime/pkg/client"

// Call is implemented by the arguments of all handlers of objects: [Change], [Task], [WatchEvent], [ChildEvent] and
// [Admission]. The methods are those of [Change]. Shared functions take it:
//
//	func relabel[T client.Object](c kopf.Call[T], labels map[string]string) {
//		c.Patch(func(object T) { object.SetLabels(labels) })
//	}
//
//nolint:interfacebloat // the methods are those that all arguments have
type Call[T client.Object] interface {
	GetObject() T
	Latest() T
	Resource() Resource
	Patch(change func(object T))
	TryPatch(change func(object T) error)
}

// Results gives access to results, for [Result]. [Change], [Task], [WatchEvent] and [ChildEvent] implement it.
type Results interface {
	SetResult(value any)
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
