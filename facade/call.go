package kopf

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
)

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

// changeMethods are the methods of [Change] that [Task], [WatchEvent] and [ChildEvent] share.
type changeMethods[T client.Object] struct{ change *Change[T] }

// Patch is [Change.Patch].
func (m *changeMethods[T]) Patch(change func(object T)) { m.change.Patch(change) }

// TryPatch is [Change.TryPatch].
func (m *changeMethods[T]) TryPatch(change func(object T) error) { m.change.TryPatch(change) }

// Latest is [Change.Latest].
func (m *changeMethods[T]) Latest() T { return m.change.Latest() }

// Resource is [Change.Resource].
func (m *changeMethods[T]) Resource() Resource { return m.change.Resource() }

// SetResult is [Change.SetResult].
func (m *changeMethods[T]) SetResult(value any) { m.change.SetResult(value) }

// RawResult is [Change.RawResult].
func (m *changeMethods[T]) RawResult(id string) (any, error) { return m.change.RawResult(id) }

// Adopt is [Change.Adopt].
func (m *changeMethods[T]) Adopt(children ...any) error { return m.change.Adopt(children...) }

// Info is [Change.Info].
func (m *changeMethods[T]) Info(reason, message string) { m.change.Info(reason, message) }

// Warn is [Change.Warn].
func (m *changeMethods[T]) Warn(reason, message string) { m.change.Warn(reason, message) }

// Event is [Change.Event].
func (m *changeMethods[T]) Event(eventType, reason, message string) {
	m.change.Event(eventType, reason, message)
}

// Exception is [Change.Exception].
func (m *changeMethods[T]) Exception(reason, message string, err error) {
	m.change.Exception(reason, message, err)
}

// EventRecorderFor is [Change.EventRecorderFor].
func (m *changeMethods[T]) EventRecorderFor(objects ...any) EventRecorder {
	return m.change.EventRecorderFor(objects...)
}

// Condition is [Change.Condition].
func (m *changeMethods[T]) Condition(conditionType string, status metav1.ConditionStatus, reason, message string) {
	m.change.Condition(conditionType, status, reason, message)
}

// Result returns the result of any handler in status.<id> as V, see [Change.SetResult]:
//
//	host, err := kopf.Result[string](c, "provision")
//
// The error for a missing result wraps [ErrNoResult].
func Result[V any](from Results, id string) (V, error) {
	var result V
	value, err := from.RawResult(id)
	if err != nil {
		return result, err
	}
	if err := codec.DecodeValue(value, &result); err != nil {
		return result, fmt.Errorf("decoding the result of handler %q: %w", id, err)
	}
	return result, nil
}
