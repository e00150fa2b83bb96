package changes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// subs are the sub-handlers of one running function. They run on its goroutine, one at a time; all that has to do with
// the account is done by the pass.
type subs struct {
	*supervision
	parent    *execution.Attempt
	ancestors []string

	mu       sync.Mutex
	declared []*handlers.Handler // those that are not known to be finished
	ids      map[string]bool     // of all that were declared
	running  bool

	queue []*execution.HandlerState // those with room that wait for their first call, in the order of declaration
	again bool                      // the room was measured anew in this run
	told  bool                      // it was told that there is too little room
}

// member is one sub-handler with its account.
type member struct {
	handler *handlers.Handler
	entry   *execution.HandlerState
}

// errRunning is a mistake of the parent function: it would wait for itself.
var errRunning = errors.New("the sub-handlers are running already")

var _ handlers.Subs = (*subs)(nil)

// duplicateError is a mistake of the parent function: it would be one for ever.
type duplicateError struct{ id string }

// Error names the sub-handler.
func (e *duplicateError) Error() string { return fmt.Sprintf("sub-handler %q is declared twice", e.id) }

// Permanent is true.
func (e *duplicateError) Permanent() bool { return true }

// Declare adds a sub-handler for the next run.
func (s *subs) Declare(h *handlers.Handler) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := h.Sub(s.parent.Call.Handler)
	if s.ids[own.ID] {
		return &duplicateError{own.ID}
	}
	if s.ids == nil {
		s.ids = map[string]bool{}
	}
	s.ids[own.ID] = true
	s.declared = append(s.declared, own)
	return nil
}

// Run calls those that are due, as the lifecycle has it. Those that do not match are not waited for; those that are
// finished are not called again.
func (s *subs) Run(ctx context.Context) error {
	declared, err := s.begin()
	if err != nil || len(declared) == 0 {
		return err
	}
	defer s.end()
	all, err := s.accounts(ctx, declared)
	if err != nil {
		return err
	}
	var picked []*execution.HandlerState
	if err := s.doing(func() error {
		if err := s.admit(ctx, all); err != nil {
			return err
		}
		picked = s.Lifecycle.Pick(s.due(all))
		return nil
	}); err != nil {
		return err
	}
	byState := make(map[*execution.HandlerState]*handlers.Handler, len(all))
	for _, m := range all {
		byState[m.entry] = m.handler
	}
	for _, entry := range picked {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := s.call(ctx, entry, byState[entry]); err != nil {
			return err
		}
	}
	return s.doing(func() error { return s.pendingOf(ctx, all) })
}

// doing is do for what may fail.
func (s *subs) doing(act func() error) error {
	var err error
	if !s.do(func() { err = act() }) {
		return errEnded
	}
	return err
}

// begin gives what is to be run. Nothing is locked meanwhile: a sub-handler that declares something for its parent by
// mistake must not wait for ever.
func (s *subs) begin() ([]*handlers.Handler, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running {
		return nil, errRunning
	}
	s.running, s.again = len(s.declared) > 0, false
	return slices.Clone(s.declared), nil
}

func (s *subs) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = false
}

// settled leaves out of further runs what is finished: a function may run each of its sub-handlers when it has declared
// it.
func (s *subs) settled(all []member) {
	finished := make(map[*handlers.Handler]bool, len(all))
	for _, m := range all {
		finished[m.handler] = m.entry.Finished()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.declared = slices.DeleteFunc(s.declared, func(h *handlers.Handler) bool { return finished[h] })
}

// accounts are those of the sub-handlers that match, in the order of declaration.
func (s *subs) accounts(ctx context.Context, declared []*handlers.Handler) (all []member, err error) {
	for _, h := range declared {
		ok, err := h.Match(ctx, s.cause)
		if err != nil {
			return nil, err
		}
		if ok {
			all = append(all, member{handler: h})
		}
	}
	return all, s.doing(func() error {
		for i, m := range all {
			entry, err := s.state.Sub(s.read, m.handler, s.ancestors, s.now())
			if err != nil {
				return err
			}
			all[i].entry = entry
		}
		return nil
	})
}

// due are those that may be called now, in the order of declaration.
func (s *subs) due(all []member) (due []*execution.HandlerState) {
	for _, m := range all {
		if !m.entry.Postponed && m.entry.Awakened(s.now()) {
			due = append(due, m.entry)
		}
	}
	return due
}

// call makes one attempt. What it does to the object is seen by the parent, and by those after it.
func (s *subs) call(ctx context.Context, entry *execution.HandlerState, h *handlers.Handler) error {
	var a *execution.Attempt
	if err := s.doing(func() error {
		ok, err := s.begun(entry)
		if ok {
			a = s.supervision.pass.attempt(h, entry, s.parent.Call.Object)
		}
		return err
	}); err != nil || a == nil {
		return err
	}
	s.equip(a, s.ancestors)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer a.End()
		_, _ = s.Chain.Reconcile(ctx, a)
	}()
	<-done
	err := s.doing(func() error {
		if err := s.finish(a); err != nil || s.gone {
			return err
		}
		return s.ended(entry)
	})
	if err == nil && a.Outcome.Aborted {
		return context.Cause(ctx)
	}
	s.parent.Adopt(a)
	return err
}

// pendingOf is nil if all are finished. Those without room wait for the others; if that is in vain, it is an error for
// good.
func (s *subs) pendingOf(ctx context.Context, all []member) error {
	var pending *execution.PendingError
	for _, m := range all {
		if m.entry.Finished() || m.entry.Postponed {
			continue
		}
		delay := time.Duration(0)
		if m.entry.Delayed != nil {
			delay = max(0, m.entry.Delayed.Sub(s.now()))
		}
		if pending == nil || delay < pending.Delay {
			pending = &execution.PendingError{Delay: delay}
		}
	}
	s.settled(all)
	crowded := s.crowded(all)
	s.tell(ctx, crowded)
	switch {
	case pending != nil:
		return pending
	case crowded == nil:
		return nil
	}
	return s.left(all, crowded)
}

// left tells whether those that have ended have left room for any of the others.
func (s *subs) left(all []member, crowded error) error {
	if err := s.measure(); err != nil {
		return err
	}
	for _, m := range all {
		if !m.entry.Postponed || m.entry.Finished() {
			continue
		}
		most, err := s.most(m.entry)
		if err != nil {
			return err
		}
		if s.room.holds(m.entry.ID, most) {
			return &execution.PendingError{}
		}
	}
	return crowded
}
