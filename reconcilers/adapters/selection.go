package adapters

import (
	"context"
	"slices"
	"sync"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
)

// Interest is what the handlers of one kind want of an object.
type Interest struct {
	// Changing is true if any changing handler matches, whatever the reason: otherwise the object is left alone.
	Changing bool
	// Finalizer is true if the object must be held on its deletion.
	Finalizer bool
}

// Teller is told what the chains of handlers have said to the question whether their functions would be called. Nil is
// nobody.
type Teller func(h *handlers.Handler, stop execution.Stop)

// questions are used again: there are some for each event of each object.
var questions = sync.Pool{New: func() any { return &execution.Attempt{} }}

// Select gives the changing handlers for the cause, in the order of registration: it asks them for their Selection. The
// same function under the same id is taken once, at its first place. Handlers of any reason are selected for those that
// only inform, too: callers of handlers ask [cause.Reason.Handled] first. An error is that of a filter.
func Select(ctx context.Context, all []*Handler, c *cause.Cause, tell Teller) ([]*Handler, error) {
	return choose(ctx, all, c, true, tell)
}

// Matching gives the handlers of other families that the object matches, in the order of registration. They know of no
// changes, and of no reasons. The same function under the same id is taken once, at its first place.
func Matching(ctx context.Context, all []*Handler, c *cause.Cause, tell Teller) ([]*Handler, error) {
	return choose(ctx, all, c, false, tell)
}

func choose(
	ctx context.Context, all []*Handler, c *cause.Cause, changing bool, tell Teller,
) (chosen []*Handler, err error) {
	question := about(c)
	defer answered(question)
	for _, h := range all {
		if (h.Description.Family == handlers.Changing) != changing || h.isAmong(chosen) {
			continue
		}
		selected, err := h.selected(ctx, question)
		if err != nil {
			return nil, err
		}
		if selected != nil {
			chosen = append(chosen, selected)
		}
		if tell != nil {
			tell(h.Description, question.Stopped)
		}
	}
	return chosen, nil
}

// Selected is the handler if it matches, and nil if it does not. If a filter panics, a changing handler is selected
// nevertheless, with the error in the place of its function: it fails and is retried by its own limits, and no other
// handler is affected. Handlers of other families do not match then.
func (h *Handler) Selected(ctx context.Context, c *cause.Cause) (*Handler, error) {
	question := about(c)
	defer answered(question)
	return h.selected(ctx, question)
}

func (h *Handler) selected(ctx context.Context, question *execution.Attempt) (*Handler, error) {
	ok, err := h.Ask(ctx, question, execution.Selection)
	switch {
	case err == nil && ok:
		return h, nil
	case !panicked(err):
		return nil, err
	case h.Description.Family == handlers.Changing:
		return h.failing(err), nil
	default:
		logf.FromContext(ctx).Error(err, "Filter of a handler panicked; the object does not match it",
			append(panics.Stack(err), "handler", h.Description.ID)...)
		return nil, nil
	}
}

// ForDisappeared asks an optional deletion handler whether it matches an object that has disappeared, and returns it
// for one attempt, whatever its limits are: there is nothing to keep its progress on. It is nil if the handler does not
// match. The error of a filter is logged.
func (h *Handler) ForDisappeared(ctx context.Context, c *cause.Cause, tell Teller) *Handler {
	question := about(c)
	defer answered(question)
	ok, err := h.answer(ctx, question, execution.Interest, tell)
	if err != nil {
		logf.FromContext(ctx).Error(err, "Filter of a handler failed; not calling it for an object that has "+
			"disappeared", append(panics.Stack(err), "handler", h.Description.ID)...)
	}
	if err != nil || !ok {
		return nil
	}
	description, one := *h.Description, 1
	description.Policy.Retries = &one
	return New(&description, h.metrics)
}

// failing is the handler with an error in the place of its function. It is a function of its own because what it
// captures moves to the heap, which would cost each question something.
func (h *Handler) failing(err error) *Handler {
	description := *h.Description
	description.Call = func(context.Context, *handlers.Invocation) error { return err }
	return New(&description, h.metrics)
}

// panicked tells whether the error is a panic of a user's function.
func panicked(err error) bool { return err != nil && panics.Stack(err) != nil }

// isAmong reports whether the same function under the same id was chosen already, for whatever reason.
func (h *Handler) isAmong(chosen []*Handler) bool {
	return slices.ContainsFunc(chosen, func(other *Handler) bool { return h.Description.Repeats(other.Description) })
}

// HasTwin reports whether the handler is registered among others, too, by another selection of the same kind.
func (h *Handler) HasTwin(others []*Handler) bool {
	return slices.ContainsFunc(others, func(other *Handler) bool { return h.Description.Twin(other.Description) })
}

// Matches asks one handler for its Selection.
func (h *Handler) Matches(ctx context.Context, c *cause.Cause, tell Teller) (bool, error) {
	question := about(c)
	defer answered(question)
	return h.answer(ctx, question, execution.Selection, tell)
}

// IsDue asks a handler that was selected for its cause whether it may be called now, by its account.
func (h *Handler) IsDue(
	ctx context.Context, account execution.Account, now func() time.Time, tell Teller,
) (bool, error) {
	question := about(nil)
	defer answered(question)
	question.Selected, question.Account, question.Now = true, account, now
	return h.answer(ctx, question, execution.Due, tell)
}

// answer is Ask, and tells what was said.
func (h *Handler) answer(
	ctx context.Context, a *execution.Attempt, question execution.Question, tell Teller,
) (bool, error) {
	ok, err := h.Ask(ctx, a, question)
	if tell != nil && err == nil {
		tell(h.Description, a.Stopped)
	}
	return ok, err
}

// InterestIn asks the changing handlers whether they want the object, until all is known: whether it must be held for
// one of them, which wants it then; and, as long as nobody is known to want it, whether one does otherwise. No filter
// is asked twice. It reports those that do not want it. A handler whose filter panics wants it: it will be selected.
func InterestIn(ctx context.Context, all []*Handler, c *cause.Cause, tell Teller) (Interest, error) {
	var found Interest
	question := about(c)
	defer answered(question)
	for _, h := range all {
		if h.Description.Family != handlers.Changing {
			continue
		}
		holds, err := h.Ask(ctx, question, execution.Deletion)
		if err != nil && !panicked(err) {
			return Interest{}, err
		}
		if holds || err != nil {
			return Interest{Changing: true, Finalizer: true}, nil
		}
		if !found.Changing && question.Stopped.Why == execution.NotHeld { // its filters have not said no
			if found.Changing, err = h.Ask(ctx, question, execution.Interest); err != nil && !panicked(err) {
				return Interest{}, err
			}
			found.Changing = found.Changing || err != nil
		}
		if tell != nil && !found.Changing { // otherwise, nothing more is to be known
			tell(h.Description, question.Stopped)
		}
	}
	return found, nil
}

// AwaitsField reports whether the object matches the filters of a handler of updates of a field, whatever the value of
// the field is: it can become what the handler is for. A deletion ends that.
func AwaitsField(ctx context.Context, all []*Handler, c *cause.Cause) (bool, error) {
	for _, h := range all {
		if h.Description.Reason != cause.Update || h.Description.Field == nil || c.Deleting {
			continue
		}
		withoutField := *h.Description
		withoutField.Field = nil
		if _, ok, err := withoutField.Prematch(ctx, c); panicked(err) {
			return true, nil
		} else if ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// Holds tells whether an object that is there already, or is about to be, must be held on its deletion for any of the
// handlers that was never called for it. An error is that of a filter.
func Holds(ctx context.Context, all Families, c *cause.Cause) (bool, error) {
	found, err := InterestIn(ctx, all.Changing, c, nil)
	if err != nil || found.Finalizer {
		return found.Finalizer, err
	}
	matching, err := Matching(ctx, all.Spawning, c, nil)
	return slices.ContainsFunc(matching, func(h *Handler) bool { return h.Description.Holds() }), err
}

// about gives an attempt to ask with about a cause, until all is answered.
func about(c *cause.Cause) *execution.Attempt {
	question, _ := questions.Get().(*execution.Attempt)
	question.Call.Cause = c
	return question
}

// answered gives it back. It holds nothing alive.
func answered(question *execution.Attempt) {
	question.Call, question.Stopped = handlers.Invocation{}, execution.Stop{}
	question.Selected, question.Account, question.Now = false, execution.Account{}, nil
	questions.Put(question)
}

// answer ends the way of questions: nothing has stopped them, so the function would be called.
func answer(*Handler) Adapter {
	return func(next Reconciler) Reconciler {
		return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
			if a.Asking != 0 {
				return reconcile.Result{}, nil
			}
			return next.Reconcile(ctx, a)
		})
	}
}

// deciding makes the adapter of a pure decision on the facts of a cause: an attempt that does not fit is stopped. What
// has happened does not matter to the questions whether the handler would ever be called, and whether the object must
// be held for it: so it is for handlers of deletions, unless they are optional.
func deciding(
	h *Handler, name string, fits func(c *cause.Cause) bool, why func(c *cause.Cause) execution.Stop,
) Adapter {
	held := h.Description.Holds()
	return func(next Reconciler) Reconciler {
		return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
			switch {
			case a.Asking == execution.Deletion && !held:
				return stopped(a, name, execution.Stop{Why: execution.NotHeld})
			case decidesOnCause(a) && !fits(a.Call.Cause):
				return stopped(a, name, why(a.Call.Cause))
			default:
				return next.Reconcile(ctx, a)
			}
		})
	}
}

// decidesOnCause is false for attempts that do not depend on what has happened: the handler was selected before, or is
// asked whether it would ever be called.
func decidesOnCause(a *execution.Attempt) bool {
	return !a.Selected && a.Asking != execution.Interest && a.Asking != execution.Deletion
}

// otherReason tells both reasons.
func otherReason(expected cause.Reason) func(c *cause.Cause) execution.Stop {
	stop := execution.Stop{Why: execution.OtherReason, Expected: expected}
	return func(c *cause.Cause) execution.Stop {
		stop := stop
		stop.Found = reasonValue(c.Reason)
		return stop
	}
}

// reasonValue boxes a reason for a Stop. Constants need no allocation, so asking costs no memory.
func reasonValue(r cause.Reason) any {
	switch r {
	case cause.Create:
		return cause.Create
	case cause.Update:
		return cause.Update
	case cause.Delete:
		return cause.Delete
	case cause.Resume:
		return cause.Resume
	case cause.Noop:
		return cause.Noop
	default:
		return r
	}
}

// stopped ends an attempt.
func stopped(a *execution.Attempt, by string, stop execution.Stop) (reconcile.Result, error) {
	stop.By = by
	a.Stopped = stop
	return reconcile.Result{}, nil
}

// progress goes on from the account of the attempts before: a handler that is finished is not called again, one that
// sleeps not yet. The attempt gets their number, and the time since the first one.
func progress(*Handler) Adapter {
	return func(next Reconciler) Reconciler {
		return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
			if a.Asking != 0 && a.Asking != execution.Due {
				return next.Reconcile(ctx, a)
			}
			now := a.Now()
			if stop := a.Account.Waits(now); stop.Why != "" && !a.Due {
				return stopped(a, "Progress", stop)
			}
			if a.Asking == 0 {
				a.Continue(now)
			}
			return next.Reconcile(ctx, a)
		})
	}
}
