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
	all          []subHandler // those that match, in the order of declaration
	queue        []int        // the places in all of those to be called
	dependencies dependencies
}

// restore takes up the progress of the sub-handlers that match, in the order of declaration.
func (r *subRun) restore(ctx context.Context, declared []*adapters.Handler) error {
	outcomes, pass := r.subs.runner.outcomes, r.subs.runner.pass
	for _, h := range declared {
		selected, err := h.Selected(ctx, outcomes.cause)
		if err != nil {
			return err
		}
		if selected != nil {
			r.all = append(r.all, subHandler{handler: selected})
		}
	}
	return r.subs.invocation.onPass(func() error {
		for i, sub := range r.all {
			state, err := outcomes.state.Sub(sub.handler.Description, r.subs.ancestors, pass.handling.Now())
			if err != nil {
				return err
			}
			if state.Awaits() {
				pass.wake(outcomes.cause, sub.handler.Description, state)
			}
			r.all[i].state = state
		}
		return r.restoreDependencies(declared)
	})
}

// callDue calls those that are due, and those that become due by that.
func (r *subRun) callDue(ctx context.Context) error {
	if err := r.subs.invocation.onPass(func() error {
		if err := r.subs.reserveForNew(ctx, r.all); err != nil {
			return err
		}
		return r.pick(ctx)
	}); err != nil {
		return err
	}
	for len(r.queue) > 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		place := r.queue[0]
		r.queue = r.queue[1:]
		if err := r.subs.call(ctx, r.all[place], func() execution.Account { return r.account(place) }); err != nil {
			return err
		}
		if err := r.releaseDependents(ctx, place); err != nil {
			return err
		}
	}
	return r.subs.invocation.onPass(func() error { return r.pending(ctx) })
}

// pick queues those that may be called now, as the lifecycle picks them.
func (r *subRun) pick(ctx context.Context) error {
	var due []*execution.HandlerState
	places := map[*execution.HandlerState]int{}
	for place, sub := range r.all {
		ok, err := r.isDue(ctx, place)
		if err != nil {
			return err
		}
		if ok {
			due, places[sub.state] = append(due, sub.state), place
		}
	}
	picked, err := execution.Pick(ctx, r.lifecycle, due)
	if err != nil {
		return err
	}
	for _, state := range picked {
		r.queue = append(r.queue, places[state])
	}
	return nil
}

func (r *subRun) isDue(ctx context.Context, place int) (bool, error) {
	sub := r.all[place]
	if sub.state.Postponed {
		return false, nil
	}
	return sub.handler.IsDue(ctx, r.account(place), r.subs.runner.pass.handling.Now, nil)
}

// account is that of the sub-handler, with what it comes after.
func (r *subRun) account(place int) execution.Account {
	account := r.all[place].state.Account()
	account.Awaits, account.Lost = r.dependencies.of(r.all[place].handler.Description)
	return account
}

// releaseDependents queues those that have waited for one that was called, if they are due now. One at a time, they
// have their turn in the next run.
func (r *subRun) releaseDependents(ctx context.Context, place int) error {
	if len(r.dependencies.dependents[place]) == 0 || r.lifecycle.Single() {
		return nil
	}
	return r.subs.invocation.onPass(func() error {
		for _, dependent := range r.dependencies.dependents[place] {
			state := r.all[dependent].state
			if !state.Waiting || r.dependencies.awaits(dependent) {
				continue
			}
			state.Release(r.subs.runner.pass.handling.Now())
			ok, err := r.isDue(ctx, dependent)
			if err != nil {
				return err
			}
			if ok {
				r.enqueue(dependent)
			}
		}
		return nil
	})
}

// enqueue keeps to the order of declaration, unless there is none.
func (r *subRun) enqueue(place int) {
	at := len(r.queue)
	if r.lifecycle != handlers.Shuffled {
		at, _ = slices.BinarySearch(r.queue, place)
	}
	r.queue = slices.Insert(r.queue, at, place)
}

// pending is nil if all are finished. Those without room wait for the others; if that is in vain, it is an error for
// good. Those that come after others have no delay of their own: there is always one that they wait for.
func (r *subRun) pending(ctx context.Context) error {
	var pending *execution.PendingError
	for place, sub := range r.all {
		if sub.state.Finished() || sub.state.Postponed || len(r.account(place).Awaits) > 0 {
			continue
		}
		delay := sub.state.Delay(r.subs.runner.pass.handling.Now())
		if pending == nil {
			pending = &execution.PendingError{Delay: delay}
		}
		if pending.Delay = min(pending.Delay, delay); pending.Awaited.Child == "" && sub.state.Awaits() {
			pending.Awaited.Child = *sub.state.Awaited
		}
	}
	r.subs.dropFinished(r.all)
	tooMany := r.subs.tooMany(r.all)
	r.subs.logTooMany(ctx, tooMany)
	switch {
	case pending != nil:
		return pending
	case tooMany == nil:
		return r.failure()
	}
	if fits, err := r.subs.anyFits(r.all); err != nil {
		return err
	} else if fits {
		return &execution.PendingError{}
	}
	return tooMany
}
