package kopf

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/children"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/inplace"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Change is one change of one object, as one handler gets it. A short name for it saves typing:
//
//	type Change = kopf.Change[*v1.Database]
//
// The fields are the handler's own copies, to be read: what is changed in c.Object itself is lost, and what shall last
// is written with Patch. A handler that forgets this is told once by the log, if it happens in one of its first calls
// or in a test. The methods may be called from goroutines of the handler, as long as it has not returned. The logger is
// in the context: log.FromContext(ctx).
type Change[T client.Object] struct {
	// Object is the present object, with what earlier handlers of the change have patched. It stays as it is but for
	// the handler's own patches: the newest state is Latest. If it does not decode into T, the handler waits until it
	// changes; for a deletion, it is called with what fits. Kopf: body, spec, status, meta.
	Object T
	// Old is the object as it was handled last, never nil: what is not known of it is zero, which for a creation is
	// everything. It has no status and no metadata but labels and annotations. Where only digests are remembered, a
	// value that has changed is not known, see [Selection.Redacted]. Kopf: old.
	//
	// What a handler refused with [Permanent] is handled as well, so it is Old the next time. A handler that may refuse
	// a change compares with what there is, such as the status, rather than with Old.
	Old T
	// Diff is what has changed between the two, by raw values, whatever T knows of them. For a creation it is one
	// addition of the whole; for a handler with a field, it is that of the field alone. Where only digests are
	// remembered, it has the paths without the values: nil. Kopf: diff.
	Diff Diff
	// Reason is why the object is handled: for a resume handler, it may also be an update or a deletion. Kopf: reason.
	Reason Reason
	// ID is the handler's. Kopf: the id of the handler.
	ID string
	// Retry counts the calls of this handler for this change before this one: 0 at the first one. Those that have
	// ended in a wait for a child do not count, see [WaitFor]. Kopf: retry.
	Retry int
	// Started is when the handler was first due for this change: time.Since(c.Started) is Kopf's runtime. Kopf:
	// started.
	Started time.Time
	// Client reads and writes other objects, with the operator's name as the field manager; the handled object itself
	// is better written with Patch: an Update erases fields that the Go type does not have, which is logged once for
	// the handler. A patch by client.MergeFrom erases them in the items of a changed list, which is not logged: the
	// patch does not say what the Go type dropped before. Under [Main] it reads what the API server has now, in all
	// namespaces that it may read, unless [Settings].CachedReads has the kind. In a manager that the project makes, it
	// reads as the manager's client does: from its cache, by default, which a first read of a kind waits for.
	Client client.Client
	// Live reads what the API server has now, past all caches.
	APIReader client.Reader

	log      logr.Logger
	codec    *codec.Codec[T]
	call     *handlers.Invocation
	mistakes *mistakes // of the handler, so that each is told once
	children *children.Keeper
	keys     *listKeys
	// finalizer is the operator's own.
	finalizer string
	watches   func(owner discovery.Resource, kind schema.GroupKind) (children, objects bool)

	mu       sync.Mutex
	original *inplace.Object[T]    // what Object was like; nil if that is not looked at
	errs     []error               // of the calls of the handler
	declared *children.Declaration // by Ensure; nil is nothing
	returned atomic.Bool           // the handler has
}

// call is the function as the engine calls it.
func (s Selection[T]) call(fn ChangeFunc[T]) handlers.Func {
	said := &mistakes{}
	return func(ctx context.Context, call *handlers.Invocation) error {
		c, err := s.newChange(ctx, call, said)
		if err != nil {
			return err
		}
		return c.end(c.succeed(ctx, fn(ctx, c)))
	}
}

// newChange makes what a function of the selection gets.
func (s Selection[T]) newChange(
	ctx context.Context, call *handlers.Invocation, said *mistakes,
) (*Change[T], error) {
	return newChange(ctx, call, s.codec, s.kind.op.clients, said)
}

// newChange makes what a function gets.
func newChange[T client.Object](
	ctx context.Context, call *handlers.Invocation, codec *codec.Codec[T], cluster clients, said *mistakes,
) (*Change[T], error) {
	object, err := codec.DecodeFrom(call.Given, call.Working)
	if call.Cause.Deleting && execution.Undecodable(err) {
		// An object that does not fit any more must not be kept from its deletion.
		logging.Warn(logf.FromContext(ctx),
			"Deleted object does not decode into the Go type; the handler gets what fits", "error", err.Error())
	} else if err != nil {
		return nil, err
	}
	c := &Change[T]{
		Object: object, Reason: Reason(call.Cause.Reason), Retry: call.Retry, Started: call.Started,
		APIReader: cluster.live, log: logf.FromContext(ctx), codec: codec, call: call,
		mistakes: said, children: cluster.children, keys: cluster.keys,
		watches: cluster.watches, finalizer: cluster.finalizer,
	}
	c.Client = c.clientOf(cluster)
	changes := call.Cause.Diff
	if call.Handler != nil {
		c.ID = call.Handler.ID
		_, _, changes = call.Handler.View(call.Cause)
	}
	c.Diff = Diff(changes.Clone())
	if c.Old, err = codec.DecodeOld(call.Cause.Old); err != nil {
		c.log.V(1).Info(
			"The old object does not decode into the type; Old is incomplete",
			"type", fmt.Sprintf("%T", object), "error", err.Error(),
		)
	}
	if said.looks() {
		c.original = inplace.New(codec, object)
	}
	return c, nil
}

var errReturned = errors.New("the handler has returned: its object cannot be changed any more")

// do runs one call of the handler after the other, and keeps its error for the end of the handler.
func (c *Change[T]) do(act func() error) {
	c.lock()
	defer c.mu.Unlock()
	if c.returned.Load() {
		c.log.Error(errReturned, "Ignoring a call by a goroutine that outlived its handler")
		return
	}
	if err := act(); err != nil {
		c.errs = append(c.errs, err)
	}
}

// succeed does what is left for a function that has returned without an error, while it still can do anything.
func (c *Change[T]) succeed(ctx context.Context, err error) error {
	c.lock()
	declared, failed := c.declared, err != nil || len(c.errs) > 0
	c.mu.Unlock()
	if failed || declared == nil {
		return err
	}
	return c.prune(ctx, declared)
}

// end ends the calls of a function that has returned, and adds their errors to that of the function.
func (c *Change[T]) end(err error) error {
	c.lock()
	defer c.mu.Unlock()
	c.returned.Store(true)
	if len(c.errs) > 0 {
		err = errors.Join(append([]error{err}, c.errs...)...)
	}
	if err != nil {
		c.mistakes.noteDelay(c.log, err)
	} else if c.original != nil {
		c.noteLost()
	}
	return err
}

// name is the object's, for messages.
func (c *Change[T]) name() string { return codec.ObjectName(c.call.Cause.Body()) }

// Result reads what a handler has left in status.<id>, see [Change.SetResult]; the handler may be any one, also of
// another operator. The type is spelled: kopf.Result[string](c, "provision").
//
// Without such a result, it is an error that errors.Is recognises as [ErrNoResult]. A value that does not fit into V is
// another error.
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

// RawResult is what a handler has left in status.<id>, as JSON values that are the caller's own; see [Result].
func (c *Change[T]) RawResult(id string) (any, error) {
	if c.byHand() {
		return nil, errByHand
	}
	value, err := c.status(id)
	if err != nil {
		return nil, fmt.Errorf("reading the result of handler %q of object %s: %w", id, c.name(), err)
	}
	return value, nil
}

// status reads the working copy, which nobody may be changing meanwhile; for a function in the background, the newest
// state.
func (c *Change[T]) status(id string) (any, error) {
	c.lock()
	defer c.mu.Unlock()
	if c.returned.Load() {
		return nil, errReturned
	}
	body, err := c.call.Working()
	if err != nil {
		return nil, err
	}
	if c.call.Live != nil {
		body = c.latest()
	}
	value, ok := diff.Resolve(body, diff.Path{"status", id})
	if !ok || value == nil {
		return nil, ErrNoResult
	}
	return diff.Copy(value), nil
}
