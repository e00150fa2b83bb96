package kopf

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/children"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Change is the argument of a handler of changes. An alias saves typing:
//
//	type Change = kopf.Change[*v1.Database]
//
// The fields are copies for this call. Direct changes to c.Object are discarded; use [Change.Patch]. Goroutines may
// call the methods until the handler returns. The logger is log.FromContext(ctx). See docs/objects.md.
type Change[T client.Object] struct {
	// Object is the object as of the start of the call, with all patches so far. Kopf: body, spec, status, meta.
	Object T
	// Old is the last-handled configuration: no status, no metadata but labels and annotations. It is never nil, and
	// zero for a creation. Unknown values are zero, see [Selection.Redacted]. Kopf: old.
	Old T
	// Diff contains the raw differences between Old and Object. For a handler with a field, paths begin at the field.
	// Kopf: diff.
	Diff Diff
	// Reason is why the object is handled. A resume handler can also get an update or a deletion. Kopf: reason.
	Reason Reason
	// ID is the handler id.
	ID string
	// Retry is the number of earlier attempts for this change. Waits by [WaitFor] do not count. Kopf: retry.
	Retry int
	// Started is when the handler was first due for this change; time.Since(c.Started) is Kopf's runtime. Kopf:
	// started.
	Started time.Time
	// Client reads and writes other objects, with the operator's name as the field manager. In your own manager, it is
	// the client of the manager, which reads from caches. Under [Main], it bypasses caches, except for
	// [Settings].CachedReads.
	Client client.Client
	// APIReader reads from the API server, without caches.
	APIReader client.Reader

	callState

	// codec converts between raw objects and T, and call is the engine's side of the call. The value does not come from
	// an operator if call is nil.
	codec    *codec.Codec[T]
	call     *handlers.Invocation
	mistakes *loggedMistakes // of the handler, so that each is logged once; nil in filters
	cluster  clientSet       // of the operator, as of the start of the call

	// The lock of callState guards the following fields.
	original *codec.Original[T]    // Object as decoded, to find changes without Patch; often nil
	declared *children.Declaration // by Ensure in this call; nil without a call of Ensure
}

// Reason is why an object is handled. Kopf: Reason.
type Reason string

// The reasons for [Selection.On].
const (
	// ReasonCreate: it was never handled completely. Kopf: Reason.CREATE.
	ReasonCreate Reason = Reason(cause.Create)
	// ReasonUpdate: it differs from the last-handled configuration. Kopf: Reason.UPDATE.
	ReasonUpdate Reason = Reason(cause.Update)
	// ReasonDelete: it is being deleted, and the finalizer holds it. Kopf: Reason.DELETE.
	ReasonDelete Reason = Reason(cause.Delete)
	// ReasonResume: it did not change while the operator was down. Kopf: Reason.RESUME.
	ReasonResume Reason = Reason(cause.Resume)
)

// Diff contains the differences between two states of an object, in a stable order. A mapping that is added or removed
// is one item, so a creation is one addition of the whole object. Lists are compared as a whole. Kopf: Diff.
type Diff []diff.Item

// Touches reports whether the value at the path, or a part of it, has changed. The path is relative to the field of the
// handler. An invalid path panics, which fails the handler.
func (d Diff) Touches(path string) bool {
	field, err := codec.ParsePath(path)
	if err != nil {
		panic(fmt.Errorf("Diff.Touches: %w", err))
	}
	for _, item := range d {
		// Either the difference is inside of the value at the path, or the value is inside of one that was added,
		// removed or replaced as a whole.
		if item.Path.HasPrefix(field...) || field.HasPrefix(item.Path...) &&
			isPartChanged(item, field[len(item.Path):]) {
			return true
		}
	}
	return false
}

// isPartChanged reports whether a difference of a whole value includes a difference of its part.
func isPartChanged(whole diff.Item, part diff.Path) bool {
	// Redacted values are missing in the difference, so any part may have changed.
	if whole.Old == nil && whole.New == nil {
		return true
	}
	before, _ := diff.ResolvePath(whole.Old, part)
	after, _ := diff.ResolvePath(whole.New, part)
	return diff.Compute(before, after) != nil
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

// RawResult returns a copy of a result as JSON values, see [Result].
func (c *Change[T]) RawResult(id string) (any, error) {
	if c.hasNoCall() {
		return nil, errWithoutOperator
	}
	value, err := c.storedResult(id)
	if err != nil {
		return nil, fmt.Errorf("reading the result of handler %q of object %s: %w", id, c.objectName(), err)
	}
	return value, nil
}

// storedResult returns a result from the status. It reads the working copy, which contains results of earlier handlers
// in the pass, and a background function the newest state. It locks, because other goroutines of the handler may patch
// the copy.
func (c *Change[T]) storedResult(id string) (any, error) {
	c.lockCalls()
	defer c.mu.Unlock()
	if c.hasReturned.Load() {
		return nil, errReturned
	}
	body, err := c.call.WorkingCopy()
	if err != nil {
		return nil, err
	}
	if c.call.LiveObject != nil {
		body = c.newestBody()
	}
	// The result may be stored under a former id of its handler.
	ids := []string{id}
	if c.call.Handler != nil {
		ids = append(ids, c.call.Handler.KindFormerIDs.FormerIDs(id)...)
	}
	for _, id := range ids {
		if value, _ := diff.ResolvePath(body, diff.Path{"status", id}); value != nil {
			return diff.DeepCopy(value), nil
		}
	}
	return nil, ErrNoResult
}

// objectName returns namespace/name of the object for messages.
func (c *Change[T]) objectName() string { return codec.ObjectName(c.call.Cause.Body()) }

// hasNoCall reports whether the value does not come from an operator.
func (c *Change[T]) hasNoCall() bool { return c == nil || c.call == nil }

// mustHaveCall panics for a value that does not come from an operator, in methods that cannot return an error. A bare
// nil dereference would not explain the mistake.
func (c *Change[T]) mustHaveCall() {
	if c.hasNoCall() {
		panic(errWithoutOperator)
	}
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
