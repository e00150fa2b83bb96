package background

import (
	"context"
	"errors"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/internal/transport"
)

// missingObjectDelay is how long a task waits if the cache lacks its object: the informer is about to report the
// deletion.
const missingObjectDelay = time.Second

// maxPauseRetryDelay is the longest delay between two attempts to write in a pause. A pause gives little time to
// finish, so the usual growth of the delay would waste it.
const maxPauseRetryDelay = 5 * time.Second

// callFunction calls the function once, and writes its changes to the object.
func (t *task) callFunction(ctx context.Context) execution.Outcome {
	settings := t.presentSettings()
	t.object.mu.Lock()
	object := t.object.latestState()
	t.calling = object != nil
	t.object.mu.Unlock()
	// The attempt does not count. The deletion will stop the task.
	if object == nil {
		delay := missingObjectDelay
		return execution.Outcome{Aborted: true, Err: execution.ErrDeleted, Delay: &delay}
	}
	a := settings.NewAttempt(t.handler.Description, &cause.Cause{Object: object}, nil)
	a.Account = execution.Account{Retries: t.retries, Started: t.started, Trace: t.trace}
	// Daemons read the object while it changes, and can write before they return.
	a.Call.LiveObject = liveTask{t}
	a.FlushNow = func(ctx context.Context) error { return t.writeOnce(ctx, a) }
	t.handler.RunAttempt(ctx, a)
	settings.Journal.ForObject(t.object.key, t.object.uid).RecordAttempt(a)
	t.object.mu.Lock()
	t.calling = false
	t.object.mu.Unlock()
	// Even after a failure, the changes are written, as in Kopf.
	t.writeWithRetries(ctx, a)
	return a.Outcome
}

// writeWithRetries repeats the write until it succeeds, the object is gone, or the API server refuses it permanently. A
// stopping task gives up at its first failed attempt, so that it delays neither a deletion nor the exit.
func (t *task) writeWithRetries(ctx context.Context, a *execution.Attempt) {
	log := logf.FromContext(ctx).WithValues("handler", t.handlerID())
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		err := t.writeOnce(ctx, a)
		if err == nil {
			return
		}
		if errors.Is(err, execution.ErrDeleted) {
			return
		}
		// In a pause, retry until the context ends: the object stays, and needs the results.
		pausing := t.isOnlyPausing(ctx)
		if patching.IsHopeless(err) || t.isStopping() && !pausing {
			log.Error(err, "Failed to write the changes of a handler; dropping them")
			return
		}
		if pausing {
			pause = min(pause, maxPauseRetryDelay)
		}
		delay := max(pause, transport.RetryAfter(err))
		log.Error(err, "Failed to write the changes of a handler; retrying", "after", delay.String())
		// While the task is stopping, [task.sleepFor] returns at once. Without the second delay, the loop would spin in
		// a pause.
		if !t.sleepFor(delay) && t.isOnlyPausing(ctx) {
			select {
			case <-ctx.Done():
			case <-time.After(min(pause, maxPauseRetryDelay)):
			}
		}
	}
}

// isOnlyPausing reports whether a pause is the only reason to stop, and its time is not over yet.
func (t *task) isOnlyPausing(ctx context.Context) bool {
	t.object.mu.Lock()
	defer t.object.mu.Unlock()
	return t.reason&Pausing != 0 && t.reason&(Unmatched|Deleted|Exiting) == 0 && ctx.Err() == nil
}

// writeOnce sends the unsaved changes of the attempt; after the end of the attempt, also its result.
// One write at a time: the function may flush while its goroutines do, and each write must see the former one.
func (t *task) writeOnce(ctx context.Context, a *execution.Attempt) error {
	t.writeSemaphore <- struct{}{}
	defer func() { <-t.writeSemaphore }()
	settings := t.presentSettings()
	// Changes that are added during the request stay for the next write.
	remembered := a.UnwrittenTransforms()
	patch := patching.Patch{Transforms: patching.ContainPanics(remembered)}
	if err := patch.AddResult(t.handlerID(), a.ResultToWrite(), a.Call.Handler.FormerIDs...); err != nil {
		return err
	}
	if patch.IsEmpty() {
		return nil
	}
	t.object.mu.Lock()
	object := t.object.latestState()
	t.object.mu.Unlock()
	if object == nil {
		return execution.ErrDeleted
	}
	body, err := object.Value()
	if err != nil {
		return err
	}
	result, err := settings.WritePatch(ctx, t.handlerID(), patching.Target{Body: body}, patch)
	if err == nil {
		a.MarkWritten(len(remembered))
		err = result.StatusRefusal
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

// liveTask gives a running function the newest state of its object, and signals when it must stop.
type liveTask struct{ task *task }

// Object returns the newest known state of the object; nil if it is gone.
func (l liveTask) Object() *jsontext.LazyObject {
	l.task.object.mu.Lock()
	defer l.task.object.mu.Unlock()
	return l.task.object.latestState()
}

// Stopping returns a channel that is closed when the function must stop.
func (l liveTask) Stopping() <-chan struct{} { return l.task.stopping }

// StopReason returns the reason as an error; nil before the function must stop.
func (l liveTask) StopReason() error {
	l.task.object.mu.Lock()
	defer l.task.object.mu.Unlock()
	return l.task.reason.CancelCause()
}

// Flags returns the reason as Kopf's flags.
func (l liveTask) Flags() StopReason {
	l.task.object.mu.Lock()
	defer l.task.object.mu.Unlock()
	return l.task.reason
}
