package facade

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Change is one change of one object, as one handler gets it. A short name for it saves typing:
//
//	type Change = kopf.Change[*v1.Database]
//
// The fields are the handler's own copies, to be read; what shall last is written with Patch. The methods may be called
// from goroutines of the handler, as long as it has not returned. The logger is in the context: log.FromContext(ctx).
type Change[T client.Object] struct {
	// Object is the present object, with what earlier handlers of the change have patched. Kopf: body, spec, status,
	// meta.
	Object T
	// Old is the object as it was handled last, never nil: what is not known of it is zero, which for a creation is
	// everything. It has no status and no metadata but labels and annotations. Where only digests are remembered, a
	// value that has changed is not known, see [Selection.Redacted]. Kopf: old.
	Old T
	// Diff is what has changed between the two, by raw values, whatever T knows of them. For a creation it is one
	// addition of the whole; for a handler with a field, it is that of the field alone. Where only digests are
	// remembered, it has the paths without the values: nil. Kopf: diff.
	Diff diff.Diff
	// Reason is why the object is handled: for a resume handler, it may also be an update or a deletion. Kopf: reason.
	Reason Reason
	// ID is the handler's. Kopf: the id of the handler.
	ID string
	// Retry counts the calls of this handler for this change before this one: 0 at the first one. Kopf: retry.
	Retry int
	// Started is when the handler was first due for this change: time.Since(c.Started) is Kopf's runtime. Kopf:
	// started.
	Started time.Time
	// Client reads from the manager's cache and writes with the operator's name as the field manager. The handled
	// object itself is better written with Patch.
	Client client.Client

	log   logr.Logger
	codec *codec.Codec[T]
	call  *handlers.Call

	mu       sync.Mutex
	errs     []error // of the calls of the handler
	returned bool    // the handler has
}

// call is the function as the engine calls it.
func (s ChangeSelection[T]) call(fn ChangeFunc[T]) handlers.Func {
	return func(ctx context.Context, call *handlers.Call) error {
		c, err := s.newChange(ctx, call)
		if err != nil {
			return err
		}
		return c.end(fn(ctx, c))
	}
}

// newChange makes what a function of the selection gets.
func (s ChangeSelection[T]) newChange(ctx context.Context, call *handlers.Call) (*Change[T], error) {
	return newChange(ctx, call, s.codec, s.kind.op.client)
}

// newChange makes what a function gets.
func newChange[T client.Object](
	ctx context.Context, call *handlers.Call, codec *codec.Codec[T], cluster client.Client,
) (*Change[T], error) {
	object, err := codec.Decode(call.Object)
	if err != nil {
		return nil, err
	}
	c := &Change[T]{
		Object: object, Reason: call.Cause.Reason, Retry: call.Retry, Started: call.Started,
		Client: cluster, log: logf.FromContext(ctx), codec: codec, call: call,
	}
	changes := call.Cause.Diff
	if call.Handler != nil {
		c.ID = call.Handler.ID
		_, _, changes = call.Handler.View(call.Cause)
	}
	c.Diff = changes.Clone()
	if c.Old, err = codec.DecodeOld(call.Cause.Old); err != nil {
		c.log.V(1).Info(
			"The old object does not decode into the type; Old is incomplete",
			"type", fmt.Sprintf("%T", object), "error", err.Error(),
		)
	}
	return c, nil
}

var errReturned = errors.New("the handler has returned: its object cannot be changed any more")

// do runs one call of the handler after the other, and keeps its error for the end of the handler.
func (c *Change[T]) do(act func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.returned {
		c.log.Error(errReturned, "Ignoring a call by a goroutine that outlived its handler")
		return
	}
	if err := act(); err != nil {
		c.errs = append(c.errs, err)
	}
}

// end ends the calls of a function that has returned, and adds their errors to that of the function.
func (c *Change[T]) end(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.returned = true
	if len(c.errs) == 0 {
		return err
	}
	return errors.Join(append([]error{err}, c.errs...)...)
}

// name is the object's, for messages.
func (c *Change[T]) name() string { return codec.ObjectName(c.call.Cause.Body) }

// Result reads what a handler has left in status.<id>, see [Change.SetResult]; the handler may be any one, also of
// another operator. The type is spelled, the rest is inferred: kopf.Result[string](c, "provision").
//
// Without such a result, it is an error that errors.Is recognises as [ErrNoResult]. A value that does not fit into V is
// another error.
func Result[V any, T client.Object](c *Change[T], id string) (V, error) {
	var result V
	value, err := c.status(id)
	if err == nil {
		err = codec.DecodeValue(value, &result)
	}
	if err != nil {
		return result, fmt.Errorf("reading the result of handler %q of object %s: %w", id, c.name(), err)
	}
	return result, nil
}

// status reads the working copy, which nobody may be changing meanwhile.
func (c *Change[T]) status(id string) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.returned {
		return nil, errReturned
	}
	value, ok := diff.Resolve(c.call.Object, diff.Path{"status", id})
	if !ok || value == nil {
		return nil, ErrNoResult
	}
	return value, nil
}
