package kopf

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/panics"
)

// TaskFunc is a daemon, or one tick of a timer, for one object. It never runs twice at once for an object. A finalizer
// holds the object until the function has returned permanently, see [Optional].
//
// Errors mean the same as in a [ChangeFunc]. When the function must end, Stopping is closed, then the context ends with
// [ErrDeleted], [ErrUnmatched], [ErrPaused] or [ErrExiting] as its cause. Errors do not count then. See
// docs/daemons.md.
type TaskFunc[T client.Object] func(ctx context.Context, r *Task[T]) error

// Daemon registers a function that runs while the object is selected. It starts when the object is first seen, also
// after a restart of the operator. A success or a permanent failure ends it in this process; other errors are retried.
// It must return when Stopping is closed. Kopf: daemon.
func (s Selection[T]) Daemon(id string, fn TaskFunc[T], opts ...daemonOption) {
	h := handlers.Handler{ID: id, Family: handlers.Background, Background: &handlers.BackgroundOptions{Daemon: true}}
	if _, ok := prepareHandler(s, &h, "Daemon", fn == nil, asOptions(opts), nil); ok {
		s.registerBackground("Daemon", h, fn)
	}
}

// Timer registers a function that is called repeatedly. The interval, or the delay of a temporary error, starts at the
// end of a call, see [Sharp] and [Idle]. Zero means one call. A permanent failure stops the timer in this process.
// [Retries] and [Timeout] apply to each tick. Kopf: timer.
func (s Selection[T]) Timer(id string, interval time.Duration, fn TaskFunc[T], opts ...timerOption) {
	h := handlers.Handler{ID: id, Family: handlers.Background,
		Background: &handlers.BackgroundOptions{Interval: interval}}
	var problems []error
	if interval < 0 {
		problems = append(problems, fmt.Errorf("the interval %s is negative", interval))
	} else if err := defaults.CheckMinimumDuration(interval); err != nil {
		problems = append(problems, fmt.Errorf("the interval %w", err))
	}
	if _, ok := prepareHandler(s, &h, "Timer", fn == nil, asOptions(opts), problems); !ok {
		return
	}
	if h.Background.Sharp && interval == 0 {
		s.kind.AddError(fmt.Errorf("Timer(%q): Sharp needs an interval: give one, or leave Sharp out", id))
		return
	}
	s.registerBackground("Timer", h, fn)
}

// registerBackground registers a daemon or timer.
func (s Selection[T]) registerBackground(verb string, h handlers.Handler, fn TaskFunc[T]) {
	setFunction(&h, fn)
	said := &loggedMistakes{}
	h.Call = func(ctx context.Context, call *handlers.Invocation) error {
		// As for handlers of changes, undeclared children are deleted only after a success.
		r := newTask(ctx, call, s.codec, s.op.clients, said)
		return r.change.finishCall(r.change.pruneAfterSuccess(ctx, fn(ctx, r)))
	}
	s.kind.Registry.RegisterHandler(registry.HandlerEntry{Kind: s.kind, Verb: verb, Handler: &h})
}

// Task is one call of a daemon or timer. Goroutines may use it until the function returns. The logger is
// log.FromContext(ctx). Its methods are those of [Change]; Patch and TryPatch leave r.Object as it is. Kopf: patch.
type Task[T client.Object] struct {
	// Object is a copy of the state at the start of the call. If it does not decode into T, the call fails. Kopf: body,
	// spec, status, meta.
	Object T
	// ID is the id of the handler.
	ID string
	// Retry counts earlier calls of this run: 0 after a success. Kopf: retry.
	Retry int
	// Started is when the run was first due. Kopf: started; runtime is time.Since(r.Started).
	Started time.Time
	// Client and APIReader read and write other objects, see [Change].
	Client    client.Client
	APIReader client.Reader

	changeMethods[T]

	done <-chan struct{} // of the context of the call, for Sleep
}

// newTask returns the argument of a background function.
func newTask[T client.Object](
	ctx context.Context, call *handlers.Invocation, codec *codec.Codec[T], cluster clientSet, said *loggedMistakes,
) *Task[T] {
	c := &Change[T]{
		ID: call.Handler.ID, callState: callState{log: logf.FromContext(ctx)}, codec: codec, call: call,
		mistakes: said, cluster: cluster,
	}
	c.Client = c.checkedClient(cluster)
	// The newest state, not the one at the time when the call was scheduled. A decoding error fails the call.
	c.Object = c.Latest()
	if said.shouldCheckCall() {
		c.original = codec.NewOriginal(c.Object)
	}
	return &Task[T]{
		Object: c.Object, ID: c.ID, Retry: call.Retry, Started: call.Started, Client: c.Client,
		APIReader: cluster.apiReader, changeMethods: changeMethods[T]{c}, done: ctx.Done(),
	}
}

// GetObject returns r.Object.
func (r *Task[T]) GetObject() T { return r.Object }

// Stopping is closed when the function must end; its context ends after the [CancelBackoff]. Kopf: stopped.
func (r *Task[T]) Stopping() <-chan struct{} { return r.liveState().Stopping() }

// Sleep waits and returns true, or false once the function must end. Kopf: stopped.wait, inverted.
//
//	for r.Sleep(10 * time.Second) {
//		check(ctx, r.Latest())
//	}
func (r *Task[T]) Sleep(d time.Duration) bool {
	stopping := r.Stopping()
	if err := defaults.CheckMinimumDuration(d); err != nil {
		r.change.mistakes.noteSleep(r.change.log, err)
		d = delayWithoutUnit
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	// Check for the end first: if the timer has expired as well, the second select chooses at random.
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

// StopReason returns why the function must end, such as [ErrDeleted], or nil. Kopf: stopped.reason.
func (r *Task[T]) StopReason() error { return r.liveState().StopReason() }

// liveState returns the running background function, as the engine sees it.
func (r *Task[T]) liveState() handlers.LiveObject {
	r.change.mustHaveCall()
	return r.change.call.LiveObject
}

// Flush is like [Change.Flush].
func (r *Task[T]) Flush(ctx context.Context) error { return r.change.Flush(ctx) }

// durationOption sets a positive duration of a background handler.
func durationOption[O Option](
	name string, value time.Duration, field func(*handlers.BackgroundOptions) *time.Duration,
) O {
	return optionOf[O](name, defaults.CheckPositive(name, value), func(h *handlers.Handler) {
		*field(h.Background) = value
	})
}

// InitialDelay delays the first call after the object is selected. Default: zero. Kopf: initial_delay=.
func InitialDelay[D time.Duration | func(object *Unstructured) time.Duration](delay D) backgroundOption {
	var err error
	var initial func(body map[string]any) (time.Duration, error)
	switch delay := any(delay).(type) {
	case time.Duration:
		err = defaults.CheckDelay("InitialDelay", delay)
		initial = func(map[string]any) (time.Duration, error) { return delay, nil }
	case func(object *Unstructured) time.Duration:
		if delay == nil {
			err = errors.New("InitialDelay: the function is nil")
		}
		// The object is shared, and the function is the user's: give it a copy, and turn a panic into an error.
		initial = func(body map[string]any) (wait time.Duration, err error) {
			object := &unstructured.Unstructured{Object: body}
			err = panics.Contain(func() error { wait = delay(object.DeepCopy()); return nil })
			return wait, err
		}
	}
	return optionOf[backgroundOption]("InitialDelay", err, func(h *handlers.Handler) {
		h.Background.InitialDelay = initial
	})
}

// Idle makes a timer wait until the object has not changed for this time, except in its status and system metadata.
// Kopf: idle=.
func Idle(idle time.Duration) timerOption {
	return durationOption[timerOption]("Idle", idle,
		func(b *handlers.BackgroundOptions) *time.Duration { return &b.Idle })
}

// Sharp starts the interval at the beginning of a call; long calls skip ticks. Kopf: sharp=True.
func Sharp() timerOption {
	return optionOf[timerOption]("Sharp", nil, func(h *handlers.Handler) { h.Background.Sharp = true })
}

// Jitter lengthens each interval by a random share of up to this one: 0.1 is a tenth.
func Jitter(share float64) timerOption {
	var err error
	// Written so that NaN is invalid, too.
	if !(share > 0 && share <= 1) {
		err = fmt.Errorf("Jitter(%g): it is a share of the interval, above 0 and up to 1: 0.1 is a tenth", share)
	}
	return optionOf[timerOption]("Jitter", err, func(h *handlers.Handler) { h.Background.Jitter = share })
}

// CancelBackoff is the time from Stopping to the end of a daemon's context. Default:
// [BackgroundSettings].InstantExitTimeout. Kopf: cancellation_backoff=.
func CancelBackoff(backoff time.Duration) daemonOption {
	return durationOption[daemonOption](
		"CancelBackoff", backoff, func(b *handlers.BackgroundOptions) *time.Duration { return &b.CancelBackoff },
	)
}

// CancelTimeout is the time from the end of the context until a daemon is abandoned. Default: no limit; an exiting
// operator waits for 5 seconds. Kopf: cancellation_timeout=.
func CancelTimeout(timeout time.Duration) daemonOption {
	return durationOption[daemonOption](
		"CancelTimeout", timeout, func(b *handlers.BackgroundOptions) *time.Duration { return &b.CancelTimeout },
	)
}

// CancelPolling is how often an unfinished daemon is logged. Default: a minute. Kopf: cancellation_polling=.
func CancelPolling(interval time.Duration) daemonOption {
	return durationOption[daemonOption](
		"CancelPolling", interval, func(b *handlers.BackgroundOptions) *time.Duration { return &b.CancelPolling },
	)
}
