package kopf

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/children"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
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

// adaptFunction adapts the function to the engine: it creates the argument, and prunes children after a success. It
// reads the clients at each call, because there are none before the set-up.
func adaptFunction[T client.Object](
	fn ChangeFunc[T], of *codec.Codec[T], cluster func() clientSet, said *loggedMistakes,
) handlers.Func {
	return func(ctx context.Context, call *handlers.Invocation) error {
		c, err := newChange(ctx, call, of, cluster(), said)
		if err != nil {
			return err
		}
		return c.finishCall(c.pruneAfterSuccess(ctx, fn(ctx, c)))
	}
}

// clients returns the clients of the operator, which change in the set-up and after the startup.
func (s Selection[T]) clients() clientSet { return s.op.clients }

// newChange creates the argument of a handler or filter. A filter has a call without a Handler.
func newChange[T client.Object](
	ctx context.Context, call *handlers.Invocation, codec *codec.Codec[T], cluster clientSet, said *loggedMistakes,
) (*Change[T], error) {
	object, err := codec.DecodeFrom(call.EncodedObject, call.WorkingCopy)
	if call.Cause.Deleting && execution.IsUndecodable(err) {
		// Usually, an object that does not decode waits until it is changed. A deletion must not wait: the finalizer
		// would hold the object forever.
		logging.Warn(logf.FromContext(ctx),
			"Deleted object does not decode into the Go type; the handler gets what fits", "error", err.Error())
	} else if err != nil {
		return nil, err
	}
	c := &Change[T]{
		Object: object, Reason: Reason(call.Cause.Reason), Retry: call.Retry, Started: call.Started,
		APIReader: cluster.apiReader, callState: callState{log: logf.FromContext(ctx)}, codec: codec, call: call,
		mistakes: said, cluster: cluster,
	}
	c.Client = c.checkedClient(cluster)
	// A handler with a field sees only differences of the field.
	changes := call.Cause.Diff
	if call.Handler != nil {
		c.ID = call.Handler.ID
		_, _, changes = call.Handler.ViewCause(call.Cause)
	}
	c.Diff = Diff(changes.Clone())
	// The former state cannot be repaired any more, so an incomplete Old is better than a handler that never runs.
	if c.Old, err = codec.DecodeOld(call.Cause.Old); err != nil {
		c.log.V(1).Info(
			"The old object does not decode into the type; Old is incomplete",
			"type", fmt.Sprintf("%T", object), "error", err.Error(),
		)
	}
	// The comparison costs time, so it is made for the first calls only, except in tests.
	if said.shouldCheckCall() {
		c.original = codec.NewOriginal(object)
	}
	return c, nil
}

var errReturned = errors.New("the handler has returned: its object cannot be changed any more")

// pruneAfterSuccess deletes undeclared children after a function that returned nil. After a failure, the declarations
// may be incomplete, so nothing is deleted.
func (c *Change[T]) pruneAfterSuccess(ctx context.Context, err error) error {
	c.lockCalls()
	// The lock is released before requests are sent.
	declared, failed := c.declared, err != nil || len(c.errs) > 0
	c.mu.Unlock()
	if failed || declared == nil {
		return err
	}
	return c.pruneChildren(ctx, declared)
}

// finishCall finishes the call after the function has returned: it rejects later method calls, and joins the errors of
// earlier ones with err.
func (c *Change[T]) finishCall(err error) error {
	c.lockCalls()
	defer c.mu.Unlock()
	if err = c.end(err); err != nil {
		c.mistakes.noteDelay(c.log, err)
	} else if c.original != nil {
		c.noteLostChanges()
	}
	return err
}

// objectName returns namespace/name of the object for messages.
func (c *Change[T]) objectName() string { return codec.ObjectName(c.call.Cause.Body()) }

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
