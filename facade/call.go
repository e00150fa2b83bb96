package kopf

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
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

// Compile-time checks: all arguments of handlers of objects implement Call, and all but Admission implement Results.
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

// GetObject returns c.Object.
func (c *Change[T]) GetObject() T { return c.Object }

// Latest returns a copy of the newest known state, without unwritten patches. If the object is deleted, it returns the
// last known state, and the context ends with [ErrDeleted]. If the object no longer decodes into T, the handler fails.
func (c *Change[T]) Latest() T {
	c.mustHaveCall()
	newest := c.newestObject()
	object, err := c.codec.DecodeFrom(newest, newest.Value)
	if err != nil {
		c.runLocked(func() error { return err })
	}
	return object
}

// newestObject returns the newest known state in its stored form. A daemon or timer sees its live object; any other
// handler sees the cache and the operator's own writes, and a filter only the cause.
func (c *Change[T]) newestObject() *jsontext.LazyObject {
	var newest *jsontext.LazyObject
	switch {
	case c.hasReturned.Load(): // a goroutine outlived the handler: the engine's state is no longer valid for this call
	case c.call.LiveObject != nil:
		newest = c.call.LiveObject.Object()
	case c.call.LatestState != nil:
		known := unstructured.Unstructured{Object: c.call.Cause.Body()}
		newest = jsontext.NewFromValue(c.call.LatestState.Latest(client.ObjectKeyFromObject(&known), known.GetUID()))
	}
	if newest == nil { // deleted, or replaced by another object: use the state at the start of the call
		newest = c.call.Cause.Object
	}
	return newest
}

// newestBody returns the newest known state in its raw form. It is shared: callers must not modify it.
func (c *Change[T]) newestBody() map[string]any {
	body, err := c.newestObject().Value()
	if err != nil {
		panic(err) // fails the handler
	}
	return body
}

// Resource returns the kind of the object with group, version, plural and scope; in [WhenChange], only the kind. Kopf:
// resource.
func (c *Change[T]) Resource() Resource {
	c.mustHaveCall()
	if c.call.Resource == nil {
		known := unstructured.Unstructured{Object: c.call.Cause.Body()}
		return Resource{GroupVersionKind: known.GroupVersionKind()}
	}
	return resourceOf(*c.call.Resource)
}

// errWithoutOperator is returned by methods of a Change, Task, WatchEvent or Admission that does not come from an
// operator.
var errWithoutOperator = errors.New("kopf: only an operator creates a Change, Task, WatchEvent or Admission; in a " +
	"test, use NewChange, NewTask, NewWatchEvent or NewAdmission of package facadetest " +
	"(github.com/kopf-runtime/kopf-runtime/facade/facadetest)")

// hasNoCall reports whether the value does not come from an operator.
func (c *Change[T]) hasNoCall() bool { return c == nil || c.call == nil }

// mustHaveCall panics for a value that does not come from an operator, in methods that cannot return an error. A bare
// nil dereference would not explain the mistake.
func (c *Change[T]) mustHaveCall() {
	if c.hasNoCall() {
		panic(errWithoutOperator)
	}
}

// mustHaveCall panics for a value that does not come from an operator.
func (a *Admission[T]) mustHaveCall() {
	if a == nil || a.call == nil {
		panic(errWithoutOperator)
	}
}

var errCalledInPatch = errors.New(
	"a function of Patch uses a method of its handler's Change, or kopf.Result or kopf.FieldChange: " +
		"call that before Patch",
)

// callState serializes the method calls of one call of a handler, which may come from several of its goroutines. It
// keeps their errors until the handler returns, because these methods do not return errors.
type callState struct {
	log         logr.Logger // of the handler
	mu          sync.Mutex
	errs        []error     // of method calls; they fail the handler when it returns
	hasReturned atomic.Bool // atomic, because readers of the newest state do not lock
}

// lock waits for other method calls of the handler. In a function of Patch, it panics: the call of Patch holds the
// lock, so the function would wait for itself forever. The panic becomes an error of the patch.
func (s *callState) lock() {
	// The test for a surrounding Patch walks the stack, so it is only made if the lock is held.
	if s.mu.TryLock() {
		return
	}
	if codec.IsInCall() {
		panic(errCalledInPatch)
	}
	s.mu.Lock()
}

// run runs one method call at a time, and keeps its error.
func (s *callState) run(act func() error) {
	s.lock()
	defer s.mu.Unlock()
	if s.hasReturned.Load() {
		s.log.Error(errReturned, "Ignoring a call by a goroutine that outlived its handler")
		return
	}
	if err := act(); err != nil {
		s.errs = append(s.errs, err)
	}
}

// end rejects later method calls, and joins the errors of earlier ones with err. The caller holds the lock.
func (s *callState) end(err error) error {
	s.hasReturned.Store(true)
	if len(s.errs) > 0 {
		err = errors.Join(append([]error{err}, s.errs...)...)
	}
	return err
}

// lockCalls is [callState.lock] for a value that may not come from an operator.
func (c *Change[T]) lockCalls() {
	c.mustHaveCall()
	c.lock()
}

// runLocked is [callState.run] for a value that may not come from an operator.
func (c *Change[T]) runLocked(act func() error) {
	c.mustHaveCall()
	c.run(act)
}

// runLocked is [callState.run] for a value that may not come from an operator.
func (a *Admission[T]) runLocked(act func() error) {
	a.mustHaveCall()
	a.run(act)
}
