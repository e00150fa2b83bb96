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
	flushes  chan chan error
	done     chan struct{}
}

func (s *supervision) run(ctx context.Context) error {
	s.flushes, s.done = make(chan chan error), make(chan struct{})
	s.interval = s.checkpoint()
	s.attempt.Call.Writes = s.attempt
	s.attempt.FlushNow = s.flushNow
	s.attempt.Outcome = s.attempt.Limits.Judge(errNoReturn)
	running, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	// Apart from the loop below, which may be busy with a write.
	defer context.AfterFunc(ctx, func() { cancel(execution.ErrExiting) })()
	go func() {
		defer close(s.done)
		defer s.attempt.End()
		_, _ = s.Chain.Reconcile(running, s.attempt)
	}()
	s.wait(ctx, cancel)
	return s.finish()
}

func (s *supervision) wait(ctx context.Context, cancel context.CancelCauseFunc) {
	exit := ctx.Done()
	due, stopTimer := s.checkpointTimer()
	defer func() { stopTimer() }()
	for {
		select {
		case <-s.done:
			return
		case <-due:
			s.writeMeanwhile(ctx, cancel)
			stopTimer()
			due, stopTimer = s.checkpointTimer()
		case reply := <-s.flushes:
			reply <- s.flush(ctx, cancel)
		case <-exit:
			exit, s.exiting = nil, true
			s.writeMeanwhile(ctx, cancel)
		}
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
func (s *supervision) writeMeanwhile(ctx context.Context, cancel context.CancelCauseFunc) {
	if s.pending.IsZero() || s.gone {
		return
	}
	if err := s.save(ctx, s.attempts); err != nil {
		logf.FromContext(ctx).Error(err, "Progress cannot be written while a handler is running; it is kept for later")
		s.pending, s.interval = s.now(), min(2*s.interval, patience)
	}
	if s.gone {
		cancel(ErrDeleted)
	}
}

// flush writes what the running function has remembered so far, together with all that waits. If that is refused, those
// before it are judged without it; it is told, and keeps what it remembered: the judgement is at its end.
func (s *supervision) flush(ctx context.Context, cancel context.CancelCauseFunc) error {
	if s.gone {
		return ErrDeleted
	}
	err := s.saveOnce(ctx, append(slices.Clip(s.attempts), s.attempt))
	if atFault(err) && len(s.attempts) > 0 {
		if err = s.save(ctx, s.attempts); err == nil && !s.gone {
			err = s.saveOnce(ctx, []*execution.Attempt{s.attempt})
		}
	}
	if s.gone {
		cancel(ErrDeleted)
		return ErrDeleted
	}
	if err == nil {
		err = s.refusal // the rest is written, but the function was promised all
	}
	return err
}

// flushNow runs on the function's goroutine: the pass does the writing, so that nothing is written twice.
func (s *supervision) flushNow(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	reply := make(chan error, 1)
	select {
	case s.flushes <- reply:
		return <-reply
	case <-s.done:
		return errEnded
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *supervision) finish() error {
	if s.gone {
		return nil
	}
	a := s.attempt
	id := a.Call.Handler.ID
	a.Previous = *s.state.Entry(id)
	if err := s.state.Conclude(id, a.Outcome, s.now()); err != nil {
		return err
	}
	s.attempts = append(s.attempts, a)
	if s.pending.IsZero() {
		s.pending = s.now()
	}
	if s.interim == nil && a.Outcome.Final && a.Outcome.Err == nil {
		s.interim = s.cause.New
	}
	s.working = withChanges(s.working, a, a.Made())
	return nil
}
