package kopf

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/inplace"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// RunFunc is a function that runs beside the changes of one object: a daemon, or one tick of a timer.
//
// # Guarantees
//
// It never runs twice at once for one object. The object stores nothing of it: a restart of the operator calls the
// function from its beginning. Unless the function is [Optional], a finalizer holds the object as long as it is
// selected and the function has not returned permanently. On the deletion of the object, the running functions are
// stopped; then all delete handlers are called until they are done, optional ones included. When the function has
// returned permanently, the finalizer is removed at once, unless others need it.
//
// # Errors
//
// They mean what they do for handlers of changes, see [ChangeFunc]. When the function has to end, Stopping is closed
// first; then the context ends, with one of [ErrDeleted], [ErrUnmatched], [ErrPaused], [ErrExiting] as its cause, and
// the error does not count.
type TaskFunc[T client.Object] func(ctx context.Context, r *Task[T]) error

// Daemon registers a function that goes on for as long as the object is selected. Kopf: daemon.
//
// # Flow
//
// It is called when the object is first seen, which is also after a restart of the operator. When it has returned, or
// failed for good, it is done, and not called again in this process; after another error, it is called again. It has to
// end when the object is deleted or is not selected any more, or the operator pauses or exits: it is asked by
// [Task.Stopping], then by the context, see [CancelBackoff], and is abandoned at last, see [CancelTimeout]. If the
// object is selected again, another one begins.
func (s Selection[T]) Daemon(id string, fn TaskFunc[T], opts ...daemonOption) {
	h := handlers.Handler{ID: id, Family: handlers.Spawning, Background: &handlers.Background{Daemon: true}}
	if _, ok := prepare(s, &h, "Daemon", fn == nil, asOptions(opts), nil); ok {
		s.spawn("Daemon", h, fn)
	}
}

// Timer registers a function that is called again and again: with the interval between the end of a call and the next
// one, or by the options [Sharp] and [Idle]. The first call is made when the object is first seen. With an interval of
// zero, there is one call; or, with Idle, one for each time of idling. Kopf: timer.
//
// # Errors
//
// The delay of a temporary error takes the place of the interval. After a permanent error, also that of [Retries] or
// [Timeout], the timer stops for good in this process; they count the attempts of one tick.
func (s Selection[T]) Timer(id string, interval time.Duration, fn TaskFunc[T], opts ...timerOption) {
	h := handlers.Handler{ID: id, Family: handlers.Spawning, Background: &handlers.Background{Interval: interval}}
	var problems []error
	if interval < 0 {
		problems = append(problems, fmt.Errorf("the interval %s is negative", interval))
	} else if err := tooShort(interval); err != nil {
		problems = append(problems, fmt.Errorf("the interval %w", err))
	}
	if _, ok := prepare(s, &h, "Timer", fn == nil, asOptions(opts), problems); !ok {
		return
	}
	if h.Background.Sharp && interval == 0 {
		s.kind.addError(fmt.Errorf("Timer(%q): Sharp needs an interval: give one, or leave Sharp out", id))
		return
	}
	s.spawn("Timer", h, fn)
}

func (s Selection[T]) spawn(verb string, h handlers.Handler, fn TaskFunc[T]) {
	setFunction(&h, fn)
	said := &mistakes{}
	h.Call = func(ctx context.Context, call *handlers.Invocation) error {
		r := newRun(ctx, call, s.codec, s.kind.op.clients, said)
		return r.change.end(r.change.succeed(ctx, fn(ctx, r)))
	}
	s.kind.op.register(registration{kind: s.kind, verb: verb, handler: &h})
}

// Run is one call of a function in the background, for one object. The methods may be called from goroutines of the
// function, as long as it has not returned. The logger is in the context: log.FromContext(ctx).
type Task[T client.Object] struct {
	// Object is the state of the object when the call began, as the handler's own copy. [Task.Latest] returns the newest
	// state. If the object does not decode into T, the call fails, and Object has what could be decoded. Kopf: body,
	// spec, status, meta.
	Object T
	// ID is the handler's. Kopf: the id of the handler.
	ID string
	// Retry counts the calls of this run before this one: 0 at the first one, and after a success. Kopf: retry.
	Retry int
	// Started is when the run was due for the first time: time.Since(r.Started) is Kopf's runtime. Kopf: started.
	Started time.Time
	// Client reads and writes other objects, Live reads past all caches: see [Change].
	Client    client.Client
	APIReader client.Reader

	change *Change[T]
	done   <-chan struct{} // of the context of the call
}

// newRun makes what a function in the background gets.
func newRun[T client.Object](
	ctx context.Context, call *handlers.Invocation, codec *codec.Codec[T], cluster clients, said *mistakes,
) *Task[T] {
	c := &Change[T]{
		ID: call.Handler.ID, log: logf.FromContext(ctx), codec: codec, call: call, mistakes: said,
		children: cluster.children, keys: cluster.keys, finalizer: cluster.finalizer,
	}
	c.Object = c.Latest()
	if said.looks() {
		c.original = inplace.New(codec, c.Object)
	}
	return &Task[T]{
		Object: c.Object, ID: c.ID, Retry: call.Retry, Started: call.Started, Client: c.clientOf(cluster),
		APIReader: cluster.live, change: c, done: ctx.Done(),
	}
}

// GetObject returns r.Object, for functions that take a [Call].
func (r *Task[T]) GetObject() T { return r.Object }

// Latest returns the newest known state of the object as a copy, see [Change.Latest]. Patches show after they are
// written.
func (r *Task[T]) Latest() T { return r.change.Latest() }

// Resource is what the object is one of, see [Change.Resource].
func (r *Task[T]) Resource() Resource { return r.change.Resource() }

// Stopping is closed when the function has to end. What it is about to do can still be done, if it does not take long:
// the context goes on for the cancellation backoff. Kopf: stopped.
func (r *Task[T]) Stopping() <-chan struct{} { return r.live().Stopping() }

// Sleep waits for the duration and returns true; it returns false as soon as the function has to end, because of
// Stopping or the end of its context, and at once if it has to already. Kopf: stopped.wait, with the opposite result.
//
//	for r.Sleep(10 * time.Second) {
//		check(ctx, r.Latest())
//	}
//	return nil
//
// A duration above zero and below a millisecond is a number without a unit, such as 30 for 30*time.Second: it waits for
// a second, and logs so once for the handler.
func (r *Task[T]) Sleep(d time.Duration) bool {
	stopping := r.Stopping()
	if err := tooShort(d); err != nil {
		r.change.mistakes.noteSleep(r.change.log, err)
		d = unitlessDelay
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-stopping:
		return false
	case <-r.done:
		return false
	default:
	}
	select {
	case <-stopping:
		return false
	case <-r.done:
		return false
	case <-timer.C:
		return true
	}
}

// StopReason is why the function has to end: [ErrDeleted], [ErrUnmatched], [ErrPaused] or [ErrExiting]; nil if it does
// not. Kopf: stopped.reason.
func (r *Task[T]) StopReason() error { return r.live().StopReason() }

func (r *Task[T]) live() handlers.Live {
	r.change.needCall()
	return r.change.call.Live
}

// Patch changes the object in the cluster when the function has returned, whether it succeeds or not; or with Flush.
// For what the change may do, see [Change.Patch]. Kopf: patch.
func (r *Task[T]) Patch(change func(object T)) {
	r.change.needCall()
	r.remember(r.change.codec.Transform(change, r.change.lists()))
}

// TryPatch is Patch with a function that may fail, see [Change.TryPatch].
func (r *Task[T]) TryPatch(change func(object T) error) {
	r.change.needCall()
	r.remember(r.change.codec.TryTransform(change, r.change.lists()))
}

func (r *Task[T]) remember(transform func(body map[string]any) error) {
	c := r.change
	c.do(func() error { return c.patchError(c.remember(transform)) })
}

// RawResult is what a handler has left in status.<id>, see [Result].
func (r *Task[T]) RawResult(id string) (any, error) { return r.change.RawResult(id) }

// SetResult sets what is written to status.<id> if the function succeeds, see [Change.SetResult].
func (r *Task[T]) SetResult(value any) { r.change.SetResult(value) }

// Flush writes now what was patched so far, and returns when the API server has it.
func (r *Task[T]) Flush(ctx context.Context) error { return r.change.Flush(ctx) }

// Info posts a Kubernetes event of the type Normal about the object, see [Change.Event].
func (r *Task[T]) Info(reason, message string) { r.change.Info(reason, message) }

// Warn posts a Kubernetes event of the type Warning about the object, see [Change.Event].
func (r *Task[T]) Warn(reason, message string) { r.change.Warn(reason, message) }

// Event posts a Kubernetes event of any type about the object, see [Change.Event].
func (r *Task[T]) Event(eventType, reason, message string) {
	r.change.Event(eventType, reason, message)
}
