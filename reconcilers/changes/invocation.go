package changes

import (
	"context"
	"errors"
	"slices"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// longestCheckpoint is how long at most to wait for another try after checkpoints that could not be written.
const longestCheckpoint = time.Minute

var errEnded = errors.New("the attempt has ended: nothing can be flushed any more")

// invocation is one function running, and the pass waiting for it: for its end, for the moment at which former
// outcomes must be written, for its own wish to write, and for the exit of the operator.
type invocation struct {
	runner   *runner
	handler  *adapters.Handler
	attempt  *execution.Attempt
	interval time.Duration // how long outcomes wait; longer if writes fail
	cancel   context.CancelCauseFunc
	requests chan func()   // what the function's goroutine wants to be done on ours
	over     chan struct{} // closed when nobody waits for them any more
}

func (i *invocation) run(ctx context.Context) error {
	pass := i.runner.pass
	i.requests, i.over = make(chan func()), make(chan struct{})
	defer close(i.over)
	i.interval = pass.handling.checkpoint()
	running, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	i.cancel = cancel
	i.prepare(i.handler, i.attempt, nil)
	// Apart from the loop below, which may be busy with a write.
	defer context.AfterFunc(ctx, func() { cancel(execution.ErrExiting) })()
	i.wait(ctx, i.handler.Start(running, i.attempt))
	pass.exiting = pass.exiting || ctx.Err() != nil // the function may have heard of it first
	return i.runner.conclude(i.attempt)
}

// prepare gives a call what it needs to write, and to run sub-handlers.
func (i *invocation) prepare(handler *adapters.Handler, a *execution.Attempt, ancestors []string) {
	a.Call.Subs = &subHandlers{
		invocation: i, runner: i.runner, handler: handler, parent: a,
		ancestors: append(slices.Clip(ancestors), handler.Description.ID),
	}
	a.FlushNow = func(ctx context.Context) error { return i.flushNow(ctx, a) }
}

func (i *invocation) wait(ctx context.Context, done <-chan struct{}) {
	exit := ctx.Done()
	due, stopTimer := i.checkpointTimer()
	defer func() { stopTimer() }()
	for {
		select {
		case <-done:
			return
		case <-due:
			i.writeCheckpoint(ctx)
		case act := <-i.requests:
			act()
		case <-exit:
			exit, i.runner.pass.exiting = nil, true
			i.writeCheckpoint(ctx)
		}
		stopTimer()
		due, stopTimer = i.checkpointTimer()
	}
}

// checkpointTimer fires when the oldest outcome must be written; never, if none waits.
func (i *invocation) checkpointTimer() (<-chan time.Time, func() bool) {
	pending := i.runner.outcomes.pending
	if pending.IsZero() || i.runner.pass.object.gone {
		return nil, func() bool { return true }
	}
	timer := time.NewTimer(max(0, i.interval-i.runner.pass.handling.now().Sub(pending)))
	return timer.C, timer.Stop
}

// writeCheckpoint saves the outcomes of former handlers while another one is running. If that fails, the handler is
// not disturbed: the last write of the pass takes it all, or fails visibly.
func (i *invocation) writeCheckpoint(ctx context.Context) {
	pass, handled := i.runner.pass, i.runner.outcomes
	if handled.pending.IsZero() || pass.object.gone {
		return
	}
	if err := pass.save(ctx, handled); err != nil {
		logf.FromContext(ctx).Error(err, "Failed to write progress while a handler is running; trying again later")
		handled.pending, i.interval = pass.handling.now(), min(2*i.interval, longestCheckpoint)
	}
	if pass.object.gone {
		i.cancel(ErrDeleted)
	}
}

// onPass runs act on the goroutine of the pass, which waits for the function; it is called on the function's goroutine.
// It returns errEnded if the function has returned meanwhile.
func (i *invocation) onPass(act func() error) (err error) {
	finished := make(chan struct{})
	select {
	case i.requests <- func() { defer close(finished); err = act() }:
		<-finished
		return err
	case <-i.over:
		return errEnded
	}
}

// flushNow runs on the function's goroutine: the pass does the writing, so that nothing is written twice.
func (i *invocation) flushNow(ctx context.Context, a *execution.Attempt) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return i.onPass(func() error { return i.flush(ctx, a) })
}

// flush writes what the running function has remembered so far, together with all that waits. If that is refused, those
// before it are judged without it; it is told, and keeps what it remembered: the judgement is at its end.
func (i *invocation) flush(ctx context.Context, a *execution.Attempt) error {
	pass, handled := i.runner.pass, i.runner.outcomes
	if pass.object.gone {
		return ErrDeleted
	}
	err := pass.saveOnce(ctx, handled, a)
	if contentRefused(err) && len(handled.attempts) > 0 {
		if err = pass.save(ctx, handled); err == nil && !pass.object.gone {
			err = pass.saveOnce(ctx, handled, a)
		}
	}
	if pass.object.gone {
		i.cancel(ErrDeleted)
		return ErrDeleted
	}
	if err == nil {
		err = pass.object.refusal // the rest is written, but the function was promised all
	}
	return err
}
