package facade

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// Run is one call of a function in the background, for one object. The methods may be called from goroutines of the
// function, as long as it has not returned. The logger is in the context: log.FromContext(ctx).
type Run[T client.Object] struct {
	// ID is the handler's. Kopf: the id of the handler.
	ID string
	// Retry counts the calls of this run before this one: 0 at the first one, and after a success. Kopf: retry.
	Retry int
	// Started is when the run was due for the first time: time.Since(r.Started) is Kopf's runtime. Kopf: started.
	Started time.Time
	// Client reads from the manager's cache and writes with the operator's name as the field manager.
	Client client.Client

	change *Change[T]
}

func newRun[T client.Object](ctx context.Context, call *handlers.Call, form *form[T], cluster client.Client) *Run[T] {
	c := &Change[T]{ID: call.Handler.ID, Client: cluster, log: logf.FromContext(ctx), form: form, call: call}
	return &Run[T]{ID: c.ID, Retry: call.Retry, Started: call.Started, Client: cluster, change: c}
}

// Object is the newest state of the object that is known, as a copy: ask again when time has passed. What was patched
// shows when it is written. If the object does not decode into its type, the call fails, and what could be decoded is
// given. Kopf: body, spec, status, meta.
func (r *Run[T]) Object() T {
	c := r.change
	body := c.call.Live.Object()
	if body == nil { // gone, as it was when the call began
		body = c.call.Cause.Body
	}
	object, err := c.form.decode(body)
	if err != nil {
		c.attempt(func() error { return err })
	}
	return object
}

// Stopping is closed when the function has to end. What it is about to do can still be done, if it does not take long:
// the context goes on for the cancellation backoff. Kopf: stopped.
func (r *Run[T]) Stopping() <-chan struct{} { return r.change.call.Live.Stopping() }

// StopReason is why the function has to end: [ErrDeleted], [ErrUnmatched], [ErrPaused] or [ErrExiting]; nil if it does
// not. Kopf: stopped.reason.
func (r *Run[T]) StopReason() error { return r.change.call.Live.StopReason() }

// Patch changes the object in the cluster when the function has returned, whether it succeeds or not; or with Flush.
// For what the change may do, see [Change.Patch]. Kopf: patch.
func (r *Run[T]) Patch(change func(object T)) {
	c := r.change
	c.attempt(func() error {
		if err := c.call.Writes.Remember(c.form.transform(change)); err != nil {
			return fmt.Errorf("patching object %s by handler %q: %w", c.name(), c.ID, err)
		}
		return nil
	})
}

// SetResult sets what is written to status.<id> if the function succeeds, see [Change.SetResult].
func (r *Run[T]) SetResult(value any) { r.change.SetResult(value) }

// Flush writes now what was patched so far, and returns when the API server has it.
func (r *Run[T]) Flush(ctx context.Context) error { return r.change.Flush(ctx) }

// Info posts a Kubernetes event of the type Normal about the object, see [Change.Event].
func (r *Run[T]) Info(reason, message string) { r.change.Info(reason, message) }

// Warn posts a Kubernetes event of the type Warning about the object, see [Change.Event].
func (r *Run[T]) Warn(reason, message string) { r.change.Warn(reason, message) }

// Event posts a Kubernetes event of any type about the object, see [Change.Event].
func (r *Run[T]) Event(kind, reason, message string) { r.change.Event(kind, reason, message) }
