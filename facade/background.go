package facade

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// RunFunc is a function that runs beside the changes of one object: a daemon, or one tick of a timer.
//
// # Guarantees
//
// It never runs twice at once for one object. Nothing of it is remembered on the object: a restart of the operator
// begins anew. The object is held by a finalizer as long as it is selected and the function has not returned for good:
// on its deletion, what runs is stopped, and all handlers that want the deletion are called until they are done, those
// that ask for no finalizer themselves, too. When the function has returned for good, the finalizer is removed at once,
// unless others need it.
//
// # Errors
//
// They mean what they do for handlers of changes, see [ChangeFunc]. When the function has to end, Stopping is closed
// first; then the context ends, with one of [ErrDeleted], [ErrUnmatched], [ErrPaused], [ErrExiting] as its cause, and
// the error does not count.
type RunFunc[T client.Object] func(ctx context.Context, r *Run[T]) error

// Daemon registers a function that goes on for as long as the object is selected. Kopf: daemon.
//
// # Flow
//
// It is called when the object is first seen, which is also after a restart of the operator. When it has returned, or
// failed for good, it is done, and not called again in this process; after another error, it is called again. It has to
// end when the object is deleted or is not selected any more, or the operator pauses or exits: it is asked by
// [Run.Stopping], then by the context, see [CancelBackoff], and is abandoned at last, see [CancelTimeout]. If the
// object is selected again, another one begins.
func (s Selection[T]) Daemon(id string, fn RunFunc[T], opts ...DaemonOption) {
	h := handlers.Handler{ID: id, Family: handlers.Spawning, Background: &handlers.Background{Daemon: true}}
	if prepare(s.ChangeSelection, &h, "Daemon", fn == nil, widened(opts), nil) {
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
func (s Selection[T]) Timer(id string, interval time.Duration, fn RunFunc[T], opts ...TimerOption) {
	h := handlers.Handler{ID: id, Family: handlers.Spawning, Background: &handlers.Background{Interval: interval}}
	var problems []error
	if interval < 0 {
		problems = append(problems, fmt.Errorf("the interval %s is negative", interval))
	}
	if !prepare(s.ChangeSelection, &h, "Timer", fn == nil, widened(opts), problems) {
		return
	}
	if h.Background.Sharp && interval == 0 {
		s.kind.mistake(fmt.Errorf("Timer(%q): Sharp needs an interval", id))
		return
	}
	s.spawn("Timer", h, fn)
}

func (s Selection[T]) spawn(verb string, h handlers.Handler, fn RunFunc[T]) {
	h.Function = reflect.ValueOf(fn).Pointer()
	h.Call = func(ctx context.Context, call *handlers.Call) error {
		r := newRun(ctx, call, s.form, s.kind.op.client)
		return r.change.ended(fn(ctx, r))
	}
	s.kind.op.add(registration{kind: s.kind, verb: verb, handler: &h})
}
