package adapters

import (
	"context"
	"slices"
	"sync"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/panics"
)

// ObjectInterest is the result of InterestIn: how the handlers of a kind depend on an object.
type ObjectInterest struct {
	// HasChangeHandler is true if any changing handler matches, whatever the reason. Otherwise the object is left
	// alone.
	HasChangeHandler bool
	// NeedsFinalizer is true if the object must be held until a delete handler was called.
	NeedsFinalizer bool
}

// VerdictFunc receives each answer of a handler's chain, such as for the journal. A nil Teller is not called.
type VerdictFunc func(h *handlers.Handler, stop execution.Stop)

// questions is a pool of attempts for questions: every event of every object needs some.
var questions = sync.Pool{New: func() any { return &execution.Attempt{} }}

// Select returns the handlers of one family for the cause, in the order of registration. It asks their chains for the
// question Selection; changes and reasons matter for changing handlers only. The same function under the same id is
// selected once, at its first position. Handlers of any reason match informational reasons as well, so callers must not
// ask for these. The error is that of a filter.
func Select(
	ctx context.Context, all []*HandlerChain, c *cause.Cause, tell VerdictFunc,
) (chosen []*HandlerChain, err error) {
	// One question serves all handlers: each of them clears the former answer.
	question := newQuestion(c)
	defer releaseQuestion(question)
	for _, h := range all {
		// A handler that is already chosen need not be asked: its answer would be dropped.
		if h.isAmong(chosen) {
			continue
		}
		selected, err := h.selectBy(ctx, question)
		if err != nil {
			return nil, err
		}
		if selected != nil {
			chosen = append(chosen, selected)
		}
		if tell != nil {
			tell(h.Description, question.Stop)
		}
	}
	return chosen, nil
}

// SelectFor returns the handler if it matches, and nil otherwise. If a filter panics, a changing handler is selected
// with the panic as its function: it fails and is retried by its own limits, and other handlers are not affected.
// Handlers of other families do not match then.
func (h *HandlerChain) SelectFor(ctx context.Context, c *cause.Cause) (*HandlerChain, error) {
	question := newQuestion(c)
	defer releaseQuestion(question)
	return h.selectBy(ctx, question)
}

// selectBy is [HandlerChain.SelectFor] for a question that the caller has prepared.
func (h *HandlerChain) selectBy(ctx context.Context, question *execution.Attempt) (*HandlerChain, error) {
	ok, err := h.Ask(ctx, question, execution.Selection)
	switch {
	case err == nil && ok:
		return h, nil
	case !isPanic(err):
		// The handler does not match, or a filter has returned an error.
		return nil, err
	case h.Description.Family == handlers.Changing:
		return h.withError(err), nil
	default:
		// The panic must not stop the event, so the handler is skipped.
		logf.FromContext(ctx).Error(err, "Filter of a handler panicked; the object does not match it",
			append(panics.StackFields(err), "handler", h.Description.ID)...)
		return nil, nil
	}
}

// ForDisappeared returns an optional deletion handler if it matches an object that has disappeared, and nil otherwise.
// The returned handler has a single attempt, whatever its limits are, because there is no object to store progress on.
// The error of a filter is logged.
func (h *HandlerChain) ForDisappeared(ctx context.Context, c *cause.Cause, tell VerdictFunc) *HandlerChain {
	question := newQuestion(c)
	defer releaseQuestion(question)
	// The question Interest skips the Deleted adapter, which requires our finalizer on the object.
	ok, err := h.askAndReport(ctx, question, execution.Interest, tell)
	if err != nil {
		logf.FromContext(ctx).Error(err, "Filter of a handler failed; not calling it for an object that has "+
			"disappeared", append(panics.StackFields(err), "handler", h.Description.ID)...)
	}
	if err != nil || !ok {
		return nil
	}
	description, one := *h.Description, 1
	description.Policy.Retries = &one
	return New(&description, h.metrics)
}

// withError returns the handler with the error in place of its function. It is separate from its caller because the
// captured error moves to the heap, and the caller must not allocate for each question.
func (h *HandlerChain) withError(err error) *HandlerChain {
	description := *h.Description
	description.Call = func(context.Context, *handlers.Invocation) error { return err }
	return New(&description, h.metrics)
}

// isPanic reports whether the error is a panic of a user's function.
func isPanic(err error) bool { return err != nil && panics.StackFields(err) != nil }

// isAmong reports whether the same function under the same id is already chosen, for whatever reason.
func (h *HandlerChain) isAmong(chosen []*HandlerChain) bool {
	return slices.ContainsFunc(chosen,
		func(other *HandlerChain) bool { return h.Description.RepeatsFunction(other.Description) })
}

// HasTwin reports whether the others contain another registration of the handler, by another selection of the kind.
func (h *HandlerChain) HasTwin(others []*HandlerChain) bool {
	return slices.ContainsFunc(others,
		func(other *HandlerChain) bool { return h.Description.IsTwin(other.Description) })
}

// MatchesCause reports the answer of one handler to the question Selection.
func (h *HandlerChain) MatchesCause(ctx context.Context, c *cause.Cause, tell VerdictFunc) (bool, error) {
	question := newQuestion(c)
	defer releaseQuestion(question)
	return h.askAndReport(ctx, question, execution.Selection, tell)
}

// IsDue reports whether a selected handler may be called now, by its account: it is neither finished nor delayed.
func (h *HandlerChain) IsDue(
	ctx context.Context, account execution.Account, now func() time.Time, tell VerdictFunc,
) (bool, error) {
	question := newQuestion(nil)
	defer releaseQuestion(question)
	// Selected skips the adapters of causes and filters, so the question does not need the cause.
	question.Selected, question.Account, question.Now = true, account, now
	return h.askAndReport(ctx, question, execution.Due, tell)
}

// askAndReport asks the handler and reports the answer to the Teller.
func (h *HandlerChain) askAndReport(
	ctx context.Context, a *execution.Attempt, question execution.Question, tell VerdictFunc,
) (bool, error) {
	ok, err := h.Ask(ctx, a, question)
	if tell != nil && err == nil {
		tell(h.Description, a.Stop)
	}
	return ok, err
}

// InterestIn finds out whether any of the changing handlers can ever match the object, and whether one of them must
// hold it. It stops at the first handler that holds the object, because that decides both. No filter runs twice. A
// handler whose filter panics counts as holding: it will be selected, and fail.
//
// The Teller gets the handlers that do not match.
func InterestIn(ctx context.Context, all []*HandlerChain, c *cause.Cause, tell VerdictFunc) (ObjectInterest, error) {
	var found ObjectInterest
	question := newQuestion(c)
	defer releaseQuestion(question)
	for _, h := range all {
		holds, err := h.Ask(ctx, question, execution.Deletion)
		if err != nil && !isPanic(err) {
			return ObjectInterest{}, err
		}
		if holds || err != nil {
			return ObjectInterest{HasChangeHandler: true, NeedsFinalizer: true}, nil
		}
		// the filters have not been checked yet
		if !found.HasChangeHandler && question.Stop.Reason == execution.FinalizerNotNeeded {
			if found.HasChangeHandler, err = h.Ask(ctx, question, execution.Interest); err != nil && !isPanic(err) {
				return ObjectInterest{}, err
			}
			found.HasChangeHandler = found.HasChangeHandler || err != nil
		}
		if tell != nil && !found.HasChangeHandler { // as soon as one handler matches, the rest does not matter
			tell(h.Description, question.Stop)
		}
	}
	return found, nil
}

// AwaitsField reports whether the object matches the filters of an update handler of a field, whatever the value of the
// field is. A change of the field can make such an object match. Objects that are being deleted never will.
func AwaitsField(ctx context.Context, all []*HandlerChain, c *cause.Cause) (bool, error) {
	for _, h := range all {
		if h.Description.Reason != cause.Update || h.Description.Field == nil || c.Deleting {
			continue
		}
		withoutField := *h.Description
		withoutField.Field = nil
		// The filters without the field decide; a panic counts as a match, as in InterestIn.
		if _, ok, err := withoutField.MatchesObject(ctx, c); isPanic(err) {
			return true, nil
		} else if ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// AnyHolds reports whether an object must be held on its deletion for any of the handlers, if none of them was called
// for it before. The object may exist, or may be about to be created. The error is that of a filter.
func AnyHolds(ctx context.Context, all Families, c *cause.Cause) (bool, error) {
	found, err := InterestIn(ctx, all.Changing, c, nil)
	if err != nil || found.NeedsFinalizer {
		return found.NeedsFinalizer, err
	}
	// Daemons and timers hold the object, too, unless they are optional.
	matching, err := Select(ctx, all.Background, c, nil)
	return slices.ContainsFunc(matching, func(h *HandlerChain) bool { return h.Description.NeedsFinalizer() }), err
}

// newQuestion returns an attempt from the pool, for questions about a cause. Callers return it with [releaseQuestion].
func newQuestion(c *cause.Cause) *execution.Attempt {
	question, _ := questions.Get().(*execution.Attempt)
	question.Call.Cause = c
	return question
}

// releaseQuestion returns the attempt to the pool. It clears all references, so that the pool does not keep objects
// alive.
func releaseQuestion(question *execution.Attempt) {
	// Only the fields that questions set need a reset. The rest has its zero value.
	question.Call, question.Stop = handlers.Invocation{}, execution.Stop{}
	question.Selected, question.Account, question.Now = false, execution.Account{}, nil
	questions.Put(question)
}

// answerAdapter is the end of the chain for questions: no adapter has stopped the question, so the function would be
// called.
func answerAdapter(*HandlerChain) Adapter {
	return func(next Reconciler) Reconciler {
		return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
			if a.Question != 0 {
				return reconcile.Result{}, nil
			}
			return next.Reconcile(ctx, a)
		})
	}
}

// causeAdapter makes the adapter of a decision on the cause alone; an attempt that does not fit is stopped. The cause
// does not matter for the questions whether the handler can ever be called and whether it must hold the object. For the
// second one, the answer is yes for deletion handlers, unless they are optional.
func causeAdapter(
	h *HandlerChain, name string, fits func(c *cause.Cause) bool, why func(c *cause.Cause) execution.Stop,
) Adapter {
	// The description does not change, so this is decided once.
	held := h.Description.NeedsFinalizer()
	return func(next Reconciler) Reconciler {
		return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
			switch {
			case a.Question == execution.Deletion && !held:
				return stopAttempt(a, name, execution.Stop{Reason: execution.FinalizerNotNeeded})
			case decidesOnCause(a) && !fits(a.Call.Cause):
				return stopAttempt(a, name, why(a.Call.Cause))
			default:
				return next.Reconcile(ctx, a)
			}
		})
	}
}

// decidesOnCause is false for attempts that do not depend on the cause: the handler was selected before, or the
// question is whether it can ever be called.
func decidesOnCause(a *execution.Attempt) bool {
	return !a.Selected && a.Question != execution.Interest && a.Question != execution.Deletion
}

// otherReason returns the Stop of a reason that does not fit, with the expected and the present reason.
func otherReason(expected cause.Reason) func(c *cause.Cause) execution.Stop {
	stop := execution.Stop{Reason: execution.OtherReason, Expected: expected}
	return func(c *cause.Cause) execution.Stop {
		// Copy the prepared value. The closure is shared by concurrent questions.
		stop := stop
		stop.Found = reasonValue(c.Reason)
		return stop
	}
}

// reasonValue converts a reason for a Stop. Converting a constant to an interface does not allocate, and questions are
// too frequent to allocate.
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

// stopAttempt ends an attempt and records why.
func stopAttempt(a *execution.Attempt, by string, stop execution.Stop) (reconcile.Result, error) {
	stop.Adapter = by
	a.Stop = stop
	return reconcile.Result{}, nil
}

// progressAdapter continues from the account of the former attempts: it stops a handler that is finished or delayed.
// Otherwise the attempt gets the number of former attempts, and the time since the first one.
func progressAdapter(*HandlerChain) Adapter {
	return func(next Reconciler) Reconciler {
		return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
			// Other questions are about the object alone, whatever the progress is.
			if a.Question != 0 && a.Question != execution.Due {
				return next.Reconcile(ctx, a)
			}
			now := a.Now()
			// Due is set by callers that have checked it already: the clock may have been set back since.
			if stop := a.Account.WaitReason(now); stop.Reason != "" && !a.Due {
				return stopAttempt(a, "Progress", stop)
			}
			if a.Question == 0 {
				a.ApplyAccount(now)
			}
			return next.Reconcile(ctx, a)
		})
	}
}
