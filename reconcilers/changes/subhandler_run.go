package changes

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
)

// restoreStates selects the sub-handlers and restores their progress, in the order of declaration.
func (r *subRun) restoreStates(ctx context.Context, declared []*adapters.HandlerChain) error {
	outcomes, pass := r.subs.runner.outcomes, r.subs.runner.pass
	for _, h := range declared {
		selected, err := h.SelectFor(ctx, outcomes.cause)
		if err != nil {
			return err
		}
		if selected != nil {
			r.selectedSubs = append(r.selectedSubs, subHandler{handler: selected})
		}
	}
	// The states belong to the pass, so they are restored on its goroutine.
	return r.subs.invocation.runOnPass(func() error {
		for i, sub := range r.selectedSubs {
			state, err := outcomes.state.RestoreSub(sub.handler.Description, r.subs.ancestors, pass.handling.Now())
			if err != nil {
				return err
			}
			if state.AwaitsChild() {
				pass.wakeIfReady(outcomes.cause, sub.handler.Description, state)
			}
			r.selectedSubs[i].state = state
		}
		return r.restoreDependencies(declared)
	})
}

// callDue calls the due sub-handlers, and those that become due through these calls.
func (r *subRun) callDue(ctx context.Context) error {
	if err := r.subs.invocation.runOnPass(func() error {
		if err := r.subs.reserveForNew(ctx, r.selectedSubs); err != nil {
			return err
		}
		return r.queueDue(ctx)
	}); err != nil {
		return err
	}
	// Each call can make more sub-handlers due, which are added to the queue.
	for len(r.queue) > 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		place := r.queue[0]
		r.queue = r.queue[1:]
		if err := r.subs.makeAttempt(ctx, r.selectedSubs[place],
			func() execution.Account { return r.accountOf(place) }); err != nil {
			return err
		}
		if err := r.releaseDependents(ctx, place); err != nil {
			return err
		}
	}
	return r.subs.invocation.runOnPass(func() error { return r.unfinishedError(ctx) })
}

// queueDue queues the due sub-handlers that the lifecycle picks.
func (r *subRun) queueDue(ctx context.Context) error {
	var due []*execution.HandlerState
	places := map[*execution.HandlerState]int{}
	for place, sub := range r.selectedSubs {
		ok, err := r.isDue(ctx, place)
		if err != nil {
			return err
		}
		if ok {
			due, places[sub.state] = append(due, sub.state), place
		}
	}
	picked, err := execution.PickHandlers(ctx, r.lifecycle, due)
	if err != nil {
		return err
	}
	for _, state := range picked {
		r.queue = append(r.queue, places[state])
	}
	return nil
}

// isDue reports whether the sub-handler can be called now. One without room cannot.
func (r *subRun) isDue(ctx context.Context, place int) (bool, error) {
	sub := r.selectedSubs[place]
	if sub.state.Postponed {
		return false, nil
	}
	return sub.handler.IsDue(ctx, r.accountOf(place), r.subs.runner.pass.handling.Now, nil)
}

// accountOf returns the account of the sub-handler with its dependencies.
func (r *subRun) accountOf(place int) execution.Account {
	account := r.selectedSubs[place].state.Account()
	account.UnfinishedDependencies,
		account.FailedDependencies = r.dependencies.awaitedAndFailed(r.selectedSubs[place].handler.Description)
	return account
}

// releaseDependents queues the sub-handlers that waited for a called one, if they are due now. A lifecycle that picks
// one at a time calls them in the next run.
func (r *subRun) releaseDependents(ctx context.Context, place int) error {
	if len(r.dependencies.dependents[place]) == 0 || r.lifecycle.PicksOne() {
		return nil
	}
	return r.subs.invocation.runOnPass(func() error {
		for _, dependent := range r.dependencies.dependents[place] {
			state := r.selectedSubs[dependent].state
			// Others can have further dependencies that are unfinished.
			if !state.Waiting || r.dependencies.mustWait(dependent) {
				continue
			}
			state.EndWaiting(r.subs.runner.pass.handling.Now())
			ok, err := r.isDue(ctx, dependent)
			if err != nil {
				return err
			}
			if ok {
				r.insertOrdered(dependent)
			}
		}
		return nil
	})
}

// insertOrdered inserts a sub-handler in the order of declaration; a shuffled queue does not have an order.
func (r *subRun) insertOrdered(place int) {
	at := len(r.queue)
	if r.lifecycle != handlers.Shuffled {
		at, _ = slices.BinarySearch(r.queue, place)
	}
	r.queue = slices.Insert(r.queue, at, place)
}

// unfinishedError returns nil if all sub-handlers are finished. Sub-handlers without room wait for the others; if no
// room remains, the error is permanent. Sub-handlers with unfinished dependencies do not have their own delays: their
// dependencies do.
func (r *subRun) unfinishedError(ctx context.Context) error {
	var pending *execution.PendingError
	for place, sub := range r.selectedSubs {
		// Only sub-handlers that could be called have delays.
		if sub.state.IsFinished() || sub.state.Postponed || len(r.accountOf(place).UnfinishedDependencies) > 0 {
			continue
		}
		delay := sub.state.NextDelay(r.subs.runner.pass.handling.Now())
		if pending == nil {
			pending = &execution.PendingError{Delay: delay}
		}
		if pending.Delay = min(pending.Delay, delay); pending.Wait.Child == "" && sub.state.AwaitsChild() {
			pending.Wait.Child = *sub.state.Awaited
		}
	}
	r.subs.dropFinished(r.selectedSubs)
	tooMany := r.subs.postponedError(r.selectedSubs)
	r.subs.logTooMany(ctx, tooMany)
	switch {
	case pending != nil:
		return pending
	case tooMany == nil:
		return r.holdOnFailureError()
	}
	// If finished sub-handlers have left room, the postponed ones are called in the next attempt.
	if fits, err := r.subs.anyFits(r.selectedSubs); err != nil {
		return err
	} else if fits {
		return &execution.PendingError{}
	}
	return tooMany
}

// Run calls the due sub-handlers that the lifecycle picks. It does not wait for those that do not match the cause, and
// does not call finished ones again.
func (s *subHandlers) Run(ctx context.Context, lifecycle *handlers.Lifecycle) error {
	declared, err := s.beginRun()
	if err != nil || len(declared) == 0 {
		return err
	}
	defer s.endRun()
	run := &subRun{subs: s, lifecycle: s.runner.pass.handling.Lifecycle}
	if lifecycle != nil {
		run.lifecycle = *lifecycle
	}
	if err := run.restoreStates(ctx, declared); err != nil {
		return err
	}
	return run.callDue(ctx)
}

// beginRun returns the sub-handlers of the run. The lock is not held during the run: a sub-handler that declares
// another one for its parent by mistake must not deadlock.
func (s *subHandlers) beginRun() ([]*adapters.HandlerChain, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running {
		return nil, errRunning
	}
	s.running, s.remeasured = len(s.declared) > 0, false // a new run can measure again
	return slices.Clone(s.declared), nil
}

// endRun allows the next run.
func (s *subHandlers) endRun() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = false
}

// failedSubsError is the permanent error of a handler with HoldOnFailure whose sub-handlers have failed.
type failedSubsError struct{ ids []string }

// Error lists the failed sub-handlers.
func (e *failedSubsError) Error() string {
	return "sub-handlers failed permanently: " + strings.Join(e.ids, ", ")
}

// Permanent returns true: failed sub-handlers are not called again.
func (e *failedSubsError) Permanent() bool { return true }

// holdOnFailureError returns the error of a deletion handler that must keep its object if a sub-handler has failed; nil
// otherwise.
func (r *subRun) holdOnFailureError() error {
	if !r.subs.invocation.handler.Description.HoldOnFailure {
		return nil
	}
	var failed []string
	for _, sub := range r.selectedSubs {
		if sub.state.Failure {
			failed = append(failed, fmt.Sprintf("%q", sub.state.ID))
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return &failedSubsError{failed}
}
