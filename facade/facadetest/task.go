package facadetest

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
)

// Task is one object, for which a daemon or a timer is called. Create it with [NewTask].
type Task[T client.Object] struct {
	trial    trial[T]
	lifetime *taskLifetime
}

// NewTask returns a task for a background function, with the options [Client], [ID], [Retry], [Started] and [Stopping].
// For the defaults, see [NewChange].
func NewTask[T client.Object](object T, options ...Option) *Task[T] {
	r := &Task[T]{
		trial:    newTrial("NewTask", object, options, optRetry, optStarted, optStopping),
		lifetime: &taskLifetime{stopping: make(chan struct{})},
	}
	if r.trial.options.stopReason != nil {
		r.Stop(r.trial.options.stopReason)
	}
	return r
}

// Stop stops the function, now or when it is called: r.Stopping is closed, and r.StopReason is the reason, such as
// kopf.ErrExiting. Any goroutine can call it, also the function itself; only the first call has an effect. Stop does
// not cancel the context of the function: it is that of the test, which can cancel it if the function does not end.
func (r *Task[T]) Stop(reason error) {
	if reason == nil {
		panicMisuse("Stop: the reason is nil: give kopf.ErrDeleted, ErrUnmatched, ErrPaused or ErrExiting")
	}
	r.lifetime.requestStop(reason)
}

// Edit changes the object in the cluster, like another client, while the function is running: t.Latest returns the new
// state. Before the first call, change the object itself.
func (r *Task[T]) Edit(change func(object T)) {
	r.trial.editObject(r.trial.subject.codec.Transform(change, codec.Lists{}))
}

// Call calls the function as a daemon, or as one tick of a timer, and returns when it has returned. The options are
// those that both verbs have, such as kopf.Retries. The next Call uses the same object, with the next Retry.
func (r *Task[T]) Call(ctx context.Context, fn kopf.TaskFunc[T], options ...kopf.Option) Outcome[T] {
	h := r.trial.registerHandler(func(s kopf.Selection[T]) {
		s.Daemon(r.trial.options.id, fn, kopf.JoinOptions(options...))
	})
	seen := r.trial.beginCall()
	a := execution.NewAttempt(seen.wrapHandler(h),
		&cause.Cause{Object: jsontext.NewFromValue(r.trial.cluster.storedBody())}, nil)
	r.lifetime.cluster, a.Call.LiveObject = r.trial.cluster, r.lifetime
	err := r.trial.runAttempt(withLogger(ctx), a, seen)
	o := r.trial.newOutcome(seen, err)
	// A finished run starts again without retries, like the next tick of a timer.
	r.trial.options.retry++
	if o.Final {
		r.trial.options.retry = 0
	}
	return o
}

// taskLifetime is the function's view of its object and of its stop.
type taskLifetime struct {
	cluster *cluster

	mu         sync.Mutex
	stopReason error
	stopping   chan struct{}
}

var _ handlers.LiveObject = (*taskLifetime)(nil)

// requestStop closes the channel with the first reason. The check under the lock prevents a second close, which would
// panic.
func (l *taskLifetime) requestStop(reason error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopReason == nil {
		l.stopReason = reason
		close(l.stopping)
	}
}

// Object returns the stored object.
func (l *taskLifetime) Object() *jsontext.LazyObject {
	return jsontext.NewFromValue(l.cluster.storedBody())
}

// Stopping returns a channel that is closed when the function must end.
func (l *taskLifetime) Stopping() <-chan struct{} { return l.stopping }

// StopReason returns the reason of the stop, or nil before.
func (l *taskLifetime) StopReason() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stopReason
}
