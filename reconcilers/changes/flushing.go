package changes

import (
	"context"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// do has something done by the pass, which waits for the function; it is called by the function's goroutine. False
// means that the function has returned meanwhile.
func (s *supervision) do(act func()) bool {
	finished := make(chan struct{})
	select {
	case s.requests <- func() { defer close(finished); act() }:
		<-finished
		return true
	case <-s.done:
		return false
	}
}

// flushNow runs on the function's goroutine: the pass does the writing, so that nothing is written twice.
func (s *supervision) flushNow(ctx context.Context, a *execution.Attempt) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var err error
	if !s.do(func() { err = s.flush(ctx, a) }) {
		return errEnded
	}
	return err
}

// flush writes what the running function has remembered so far, together with all that waits. If that is refused, those
// before it are judged without it; it is told, and keeps what it remembered: the judgement is at its end.
func (s *supervision) flush(ctx context.Context, a *execution.Attempt) error {
	if s.gone {
		return ErrDeleted
	}
	err := s.saveOnce(ctx, append(slices.Clip(s.attempts), a))
	if atFault(err) && len(s.attempts) > 0 {
		if err = s.save(ctx, s.attempts); err == nil && !s.gone {
			err = s.saveOnce(ctx, []*execution.Attempt{a})
		}
	}
	if s.gone {
		s.cancel(ErrDeleted)
		return ErrDeleted
	}
	if err == nil {
		err = s.refusal // the rest is written, but the function was promised all
	}
	return err
}

// finish takes the outcome of an attempt into account.
func (s *supervision) finish(a *execution.Attempt) error {
	if s.gone {
		return nil
	}
	id := a.Call.Handler.ID
	a.Previous = *s.state.Handler(id)
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
