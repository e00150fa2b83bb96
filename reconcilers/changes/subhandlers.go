package changes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// subHandlers are those of one running function, which waits for them. They run one at a time, each on a goroutine of
// its own; all that has to do with outcomes runs on the goroutine of the pass.
type subHandlers struct {
	invocation *invocation
	runner     *runner
	handler    *adapters.Handler // whose sub-handlers they are
	parent     *execution.Attempt
	ancestors  []string

	mu       sync.Mutex
	declared []*adapters.Handler // those that are not known to be finished
	ids      map[string]bool     // of all that were declared
	running  bool

	waiting    []*execution.HandlerState // those with room that wait for their first call, in the order of declaration
	remeasured bool                      // the budget was measured anew in this run
	logged     bool                      // it was logged that there is too little room
}

// subHandler is one of them with its state.
type subHandler struct {
	handler *adapters.Handler
	state   *execution.HandlerState
}

// errRunning is a mistake of the parent function: it would wait for itself.
var errRunning = errors.New("the sub-handlers are running already")

var _ handlers.Subs = (*subHandlers)(nil)

// duplicateError is a mistake of the parent function: it would be one for ever.
type duplicateError struct{ id string }

// Error names the sub-handler.
func (e *duplicateError) Error() string { return fmt.Sprintf("sub-handler %q is declared twice", e.id) }

// Permanent is true.
func (e *duplicateError) Permanent() bool { return true }

// Declare adds a sub-handler for the next run.
func (s *subHandlers) Declare(h *handlers.Handler) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.handler.Sub(h)
	id := own.Description.ID
	if s.ids[id] {
		return &duplicateError{id}
	}
	if s.ids == nil {
		s.ids = map[string]bool{}
	}
	s.ids[id] = true
	s.declared = append(s.declared, own)
	return nil
}

// dropFinished leaves out of further runs what is finished: a function may run each of its sub-handlers when it has
// declared it.
func (s *subHandlers) dropFinished(all []subHandler) {
	finished := make(map[*adapters.Handler]bool, len(all))
	for _, sub := range all {
		finished[sub.handler] = sub.state.Finished()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.declared = slices.DeleteFunc(s.declared, func(h *adapters.Handler) bool { return finished[h] })
}

// restore takes up the progress of the sub-handlers that match, in the order of declaration.
func (s *subHandlers) restore(ctx context.Context, declared []*adapters.Handler) (all []subHandler, err error) {
	outcomes, pass := s.runner.outcomes, s.runner.pass
	for _, h := range declared {
		ok, err := h.Matches(ctx, outcomes.cause)
		if err != nil {
			return nil, err
		}
		if ok {
			all = append(all, subHandler{handler: h})
		}
	}
	return all, s.invocation.onPass(func() error {
		read := pass.object.recordReader(ctx)
		for i, sub := range all {
			state, err := outcomes.state.Sub(read, sub.handler.Description, s.ancestors, pass.handling.now())
			if err != nil {
				return err
			}
			all[i].state = state
		}
		return nil
	})
}

// due are those that may be called now, in the order of declaration.
func (s *subHandlers) due(ctx context.Context, all []subHandler) (due []*execution.HandlerState, err error) {
	for _, sub := range all {
		if sub.state.Postponed {
			continue
		}
		ok, err := sub.handler.IsDue(ctx, sub.state.Account(), s.runner.pass.handling.now)
		if err != nil {
			return nil, err
		}
		if ok {
			due = append(due, sub.state)
		}
	}
	return due, nil
}

// call makes one attempt. What it does to the object is seen by the parent, and by those after it.
func (s *subHandlers) call(ctx context.Context, state *execution.HandlerState, h *adapters.Handler) error {
	var a *execution.Attempt
	if err := s.invocation.onPass(func() error {
		ok, err := s.reserveForCall(state)
		if ok {
			a = s.runner.attempt(h, state, s.parent.Call.Object)
		}
		return err
	}); err != nil || a == nil {
		return err
	}
	s.invocation.prepare(h, a, s.ancestors)
	h.Run(ctx, a)
	err := s.invocation.onPass(func() error {
		if err := s.runner.conclude(a); err != nil || s.runner.pass.object.gone {
			return err
		}
		return s.returnUnused(state)
	})
	if err == nil && a.Outcome.Aborted {
		return context.Cause(ctx)
	}
	s.parent.Adopt(a)
	return err
}

// pending is nil if all are finished. Those without room wait for the others; if that is in vain, it is an error for
// good.
func (s *subHandlers) pending(ctx context.Context, all []subHandler) error {
	var pending *execution.PendingError
	for _, sub := range all {
		if sub.state.Finished() || sub.state.Postponed {
			continue
		}
		delay := time.Duration(0)
		if sub.state.Delayed != nil {
			delay = max(0, sub.state.Delayed.Sub(s.runner.pass.handling.now()))
		}
		if pending == nil || delay < pending.Delay {
			pending = &execution.PendingError{Delay: delay}
		}
	}
	s.dropFinished(all)
	tooMany := s.tooMany(all)
	s.logTooMany(ctx, tooMany)
	switch {
	case pending != nil:
		return pending
	case tooMany == nil:
		return nil
	}
	if fits, err := s.anyFits(all); err != nil {
		return err
	} else if fits {
		return &execution.PendingError{}
	}
	return tooMany
}
