package changes

import (
	"context"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// subRun is one run of the sub-handlers that are declared so far.
type subRun struct {
	subs         *subHandlers
	lifecycle    handlers.Lifecycle
	selectedSubs []subHandler // the selected ones, in the order of declaration
	queue        []int        // indexes in all of the sub-handlers to be called
	dependencies dependencies
}

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
