package changes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

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
	declared []*handlers.Handler
	running  bool
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
	for _, other := range s.declared {
		if other.ID == own.ID {
			return &duplicateError{own.ID}
		}
	}
	s.declared = append(s.declared, own)
	return nil
}

// Run calls those that are due, as the lifecycle has it. Those that do not match are not waited for; those that are finished
// are not called again.
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
	var picked []*execution.Entry
	if !s.do(func() { picked = s.Lifecycle.Pick(s.due(declared, all)) }) {
		return errEnded
	}
	for _, entry := range picked {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := s.call(ctx, entry, all[entry]); err != nil {
			return err
		}
	}
	if !s.do(func() { err = s.pendingOf(all) }) {
		return errEnded
	}
	return err
}

// begin gives what is to be run. Nothing is locked meanwhile: a sub-handler that declares something for its parent by mistake
// must not wait for ever.
func (s *subs) begin() ([]*handlers.Handler, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running {
		return nil, errRunning
	}
	s.running = len(s.declared) > 0
	return slices.Clone(s.declared), nil
}

func (s *subs) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = false
}

// accounts are those of the sub-handlers that match.
func (s *subs) accounts(ctx context.Context, declared []*handlers.Handler) (all map[*execution.Entry]*handlers.Handler, err error) {
	all = map[*execution.Entry]*handlers.Handler{}
	for _, h := range declared {
		ok, err := h.Match(ctx, s.cause)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		var entry *execution.Entry
		if !s.do(func() { entry, err = s.state.Sub(s.read, h.ID, s.ancestors, s.now()) }) {
			return nil, errEnded
		}
		if err != nil {
			return nil, err
		}
		all[entry] = h
	}
	return all, nil
}

// due are those that may be called now, in the order of declaration.
func (s *subs) due(declared []*handlers.Handler, all map[*execution.Entry]*handlers.Handler) (due []*execution.Entry) {
	for _, h := range declared {
		for entry, own := range all {
			if own == h && entry.Awakened(s.now()) {
				due = append(due, entry)
			}
		}
	}
	return due
}

// call makes one attempt. What it does to the object is seen by the parent, and by those after it.
func (s *subs) call(ctx context.Context, entry *execution.Entry, h *handlers.Handler) error {
	var a *execution.Attempt
	if !s.do(func() { a = s.supervision.pass.attempt(h, entry) }) {
		return errEnded
	}
	a.Call.Object = runtime.DeepCopyJSON(s.parent.Call.Object)
	s.equip(a, s.ancestors)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer a.End()
		_, _ = s.Chain.Reconcile(ctx, a)
	}()
	<-done
	var err error
	if !s.do(func() { err = s.finish(a) }) {
		return errEnded
	}
	if err == nil && a.Outcome.Aborted {
		return context.Cause(ctx)
	}
	s.parent.Adopt(a)
	return err
}

// pendingOf is nil if all are finished.
func (s *subs) pendingOf(all map[*execution.Entry]*handlers.Handler) error {
	var pending *execution.PendingError
	for entry := range all {
		if entry.Finished() {
			continue
		}
		delay := time.Duration(0)
		if entry.Delayed != nil {
			delay = max(0, entry.Delayed.Sub(s.now()))
		}
		if pending == nil || delay < pending.Delay {
			pending = &execution.PendingError{Delay: delay}
		}
	}
	if pending == nil {
		return nil
	}
	return pending
}
