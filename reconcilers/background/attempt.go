package background

import (
	"context"
	"errors"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/transport"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

// goneDelay is how long a task waits if the cache lacks its object: the informer is about to report the deletion.
const goneDelay = time.Second

// slowestInsistence is the longest delay between two attempts to write in a pause. A pause gives little time to finish,
// so the usual growth of the delay would waste it.
const slowestInsistence = 5 * time.Second

// attempt calls the function once, and writes its changes to the object.
func (t *task) attempt(ctx context.Context) execution.Outcome {
	settings := t.settings()
	t.object.mu.Lock()
	object := t.object.latest()
	t.calling = object != nil
	t.object.mu.Unlock()
	// The attempt does not count. The deletion will stop the task.
	if object == nil {
		delay := goneDelay
		return execution.Outcome{Aborted: true, Err: execution.ErrDeleted, Delay: &delay}
	}
	a := settings.NewAttempt(t.handler.Description, &cause.Cause{Object: object}, nil)
	a.Account = execution.Account{Retries: t.retries, Started: t.started, Trace: t.trace}
	// Daemons read the object while it changes, and can write before they return.
	a.Call.Live = live{t}
	a.FlushNow = func(ctx context.Context) error { return t.write(ctx, a) }
	t.handler.Run(ctx, a)
	settings.Journal.Object(t.object.key, t.object.uid).Attempt(a)
	t.object.mu.Lock()
	t.calling = false
	t.object.mu.Unlock()
	// Even after a failure, the changes are written, as in Kopf.
	t.deliver(ctx, a)
	return a.Outcome
}

// deliver repeats the write until it succeeds, the object is gone, or the API server refuses it permanently. A
// stopping task gives up at its first failed attempt, so that it delays neither a deletion nor the exit.
func (t *task) deliver(ctx context.Context, a *execution.Attempt) {
	log := logf.FromContext(ctx).WithValues("handler", t.id())
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		err := t.write(ctx, a)
		if err == nil {
			return
		}
		if errors.Is(err, execution.ErrDeleted) {
			return
		}
		// In a pause, retry until the context ends: the object stays, and needs the results.
		pausing := t.pausing(ctx)
		if patching.Hopeless(err) || t.isStopping() && !pausing {
			log.Error(err, "Failed to write the changes of a handler; dropping them")
			return
		}
		if pausing {
			pause = min(pause, slowestInsistence)
		}
		delay := max(pause, transport.RetryAfter(err))
		log.Error(err, "Failed to write the changes of a handler; retrying", "after", delay.String())
		// While the task is stopping, [task.sleep] returns at once. Without the second delay, the loop would spin in
		// a pause.
		if !t.sleep(delay) && t.pausing(ctx) {
			select {
			case <-ctx.Done():
			case <-time.After(min(pause, slowestInsistence)):
			}
		}
	}
}

// pausing reports whether a pause is the only reason to stop, and its time is not over yet.
func (t *task) pausing(ctx context.Context) bool {
	t.object.mu.Lock()
	defer t.object.mu.Unlock()
	return t.reason&Pausing != 0 && t.reason&(Unmatched|Deleted|Exiting) == 0 && ctx.Err() == nil
}

// write sends the unsaved changes of the attempt; after the end of the attempt, also its result.
// One write at a time: the function may flush while its goroutines do, and each write must see the former one.
func (t *task) write(ctx context.Context, a *execution.Attempt) error {
	t.writing <- struct{}{}
	defer func() { <-t.writing }()
	settings := t.settings()
	// Changes that are added during the request stay for the next write.
	remembered := a.Remembered()
	patch := patching.Patch{Transforms: patching.Contained(remembered)}
	if err := patch.AddResult(t.id(), a.Result(), a.Call.Handler.FormerIDs...); err != nil {
		return err
	}
	if patch.Empty() {
		return nil
	}
	t.object.mu.Lock()
	object := t.object.latest()
	t.object.mu.Unlock()
	if object == nil {
		return execution.ErrDeleted
	}
	body, err := object.Value()
	if err != nil {
		return err
	}
	result, err := settings.Write(ctx, t.id(), patching.Target{Body: body}, patch, nil)
	if err == nil {
		a.Written(len(remembered))
		err = result.StatusRefused
	}
	// The answer is newer than the cache until the informer delivers it. A released or deleted object never arrives
	// there, so it must not be kept.
	t.object.mu.Lock()
	defer t.object.mu.Unlock()
	if result.Body != nil && !result.Released && !result.Gone {
		t.object.noteWritten(result.Body)
	}
	return err
}

// live gives a running function the newest state of its object, and signals when it must stop.
type live struct{ task *task }

// Object returns the newest known state of the object; nil if it is gone.
func (l live) Object() *jsontext.Object {
	l.task.object.mu.Lock()
	defer l.task.object.mu.Unlock()
	return l.task.object.latest()
}

// Stopping returns a channel that is closed when the function must stop.
func (l live) Stopping() <-chan struct{} { return l.task.stopping }

// StopReason returns the reason as an error; nil before the function must stop.
func (l live) StopReason() error {
	l.task.object.mu.Lock()
	defer l.task.object.mu.Unlock()
	return l.task.reason.Err()
}

// Flags returns the reason as Kopf's flags.
func (l live) Flags() Reason {
	l.task.object.mu.Lock()
	defer l.task.object.mu.Unlock()
	return l.task.reason
}
