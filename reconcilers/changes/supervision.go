package changes

import (
	"context"
	"errors"
	"slices"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// patience is how long at most to wait for another try after checkpoints that could not be written.
const patience = time.Minute

var (
	errEnded    = errors.New("the attempt has ended: nothing can be flushed any more")
	errNoReturn = errors.New("the function ended its goroutine instead of returning")
)

// supervision is one function running, and the pass waiting for it: for its end, for the moment at which former
// outcomes must be written, for its own wish to write, and for the exit of the operator.
type supervision struct {
	*pass
	attempt  *execution.Attempt
	interval time.Duration // how long outcomes wait; longer if writes fail
	cancel   context.CancelCauseFunc
	requests chan func() // what the function's goroutine wants to be done on ours
	done     chan struct{}
}

func (s *supervision) run(ctx context.Context) error {
	s.requests, s.done = make(chan func()), make(chan struct{})
	s.interval = s.checkpoint()
	running, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	s.cancel = cancel
	s.equip(s.attempt, nil)
	// Apart from the loop below, which may be busy with a write.
	defer context.AfterFunc(ctx, func() { cancel(execution.ErrExiting) })()
	go func() {
		defer close(s.done)
		defer s.attempt.End()
		_, _ = s.Chain.Reconcile(running, s.attempt)
	}()
	s.wait(ctx)
	s.exiting = s.exiting || ctx.Err() != nil // the function may have heard of it first
	return s.finish(s.attempt)
}

// equip gives a call what it needs to write, and to run sub-handlers.
func (s *supervision) equip(a *execution.Attempt, ancestors []string) {
	a.Call.Writes = a
	a.Call.Subs = &subs{supervision: s, parent: a, ancestors: append(slices.Clip(ancestors), a.Call.Handler.ID)}
	a.FlushNow = func(ctx context.Context) error { return s.flushNow(ctx, a) }
	a.Outcome = a.Limits.Judge(errNoReturn)
}

func (s *supervision) wait(ctx context.Context) {
	exit := ctx.Done()
	due, stopTimer := s.checkpointTimer()
	defer func() { stopTimer() }()
	for {
		select {
		case <-s.done:
			return
		case <-due:
			s.writeMeanwhile(ctx)
		case act := <-s.requests:
			act()
		case <-exit:
			exit, s.exiting = nil, true
			s.writeMeanwhile(ctx)
		}
		stopTimer()
		due, stopTimer = s.checkpointTimer()
	}
}

// checkpointTimer fires when the oldest outcome must be written; never, if none waits.
func (s *supervision) checkpointTimer() (<-chan time.Time, func() bool) {
	if s.pending.IsZero() || s.gone {
		return nil, func() bool { return true }
	}
	timer := time.NewTimer(max(0, s.interval-s.now().Sub(s.pending)))
	return timer.C, timer.Stop
}

// writeMeanwhile saves the outcomes of former handlers while another one is running. If that fails, the handler is
// not disturbed: the last write of the pass takes it all, or fails visibly.
func (s *supervision) writeMeanwhile(ctx context.Context) {
	if s.pending.IsZero() || s.gone {
		return
	}
	if err := s.save(ctx, s.attempts); err != nil {
		logf.FromContext(ctx).Error(err, "Progress cannot be written while a handler is running; it is kept for later")
		s.pending, s.interval = s.now(), min(2*s.interval, patience)
	}
	if s.gone {
		s.cancel(ErrDeleted)
	}
}
