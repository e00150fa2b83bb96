package owned

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/internal/panics"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
)

// ChildHandling calls the handlers of one kind of owners for their children. Workers share it, and must not modify it.
type ChildHandling struct {
	kind.HandledKind
	// Children holds the state of the children.
	Children *Children
	// Handlers are those for children, in the order of registration.
	Handlers []*adapters.HandlerChain
}

// ChildResult is the outcome of one pass over the children of an owner.
type ChildResult struct {
	// Body is the owner after the last write; nil if there was none. Released reports that the write removed its last
	// finalizer.
	Body     map[string]any
	Released bool
	// RequeueAfter is the delay until the next pass without an event; nil is none.
	RequeueAfter *time.Duration
}

// ReconcileChildren calls the handlers for the children that changed since their last call, stores how children have
// ended, and repairs drifted children. Changes that a handler makes to the owner are written when it returns.
func (h *ChildHandling) ReconcileChildren(ctx context.Context, body map[string]any) (result ChildResult) {
	result.Body = body
	for _, handler := range h.Handlers {
		if handler.Description.Call != nil {
			h.callForPending(ctx, handler, &result)
		}
	}
	if h.mayContinue(ctx, result) {
		h.saveEndedChildren(ctx, &result)
	}
	if h.mayContinue(ctx, result) {
		if again := h.Children.Author.RepairChildren(ctx, result.Body, h.Events); again != nil {
			result.retryWithin(*again)
		}
	}
	// An unchanged version means that no write changed the owner.
	if patching.ResourceVersion(result.Body) == patching.ResourceVersion(body) {
		result.Body = nil
	}
	return result
}

// callForPending calls the handler for each child with unhandled changes.
func (h *ChildHandling) callForPending(ctx context.Context, handler *adapters.HandlerChain, result *ChildResult) {
	uid := types.UID(patching.ObjectUID(result.Body))
	for _, one := range h.Children.pendingChildren(result.Body, handler.Description) {
		// A failed attempt for one child does not delay the others.
		if wait := one.account.Until.Sub(currentTime()); wait > 0 {
			result.retryWithin(wait)
			continue
		}
		// Each call may change the owner, so the filters are evaluated again for each child.
		if !h.mayContinue(ctx, *result) || !h.matchesOwner(ctx, handler, result.Body) {
			return
		}
		if h.matchesChild(ctx, handler, one) {
			h.callForChild(ctx, handler, one, result)
		} else {
			// A child that the filter rejects counts as handled, until its next change.
			h.Children.noteHandled(uid, handler.Description, one)
		}
	}
}

// mayContinue reports whether another step may begin for the owner. It is false after the release of the owner, during
// a pause, and when the operator exits.
func (h *ChildHandling) mayContinue(ctx context.Context, result ChildResult) bool {
	return !result.Released && h.MayBegin(ctx)
}

// retryWithin lowers the delay until the next pass to this one, if it is shorter.
func (r *ChildResult) retryWithin(delay time.Duration) {
	if r.RequeueAfter != nil {
		delay = min(delay, *r.RequeueAfter)
	}
	r.RequeueAfter = &delay
}

// matchesOwner evaluates the filters of the handler for the owner. A filter that fails counts as not matching.
func (h *ChildHandling) matchesOwner(ctx context.Context, handler *adapters.HandlerChain, body map[string]any) bool {
	owner := &cause.Cause{Object: jsontext.NewFromValue(body), Deleting: patching.IsBeingDeleted(body)}
	ok, err := handler.MatchesCause(ctx, owner, nil)
	if err != nil {
		logf.FromContext(ctx).Error(err, "Filter of a handler failed; not calling it for children",
			append(panics.StackFields(err), "handler", handler.Description.ID)...)
	}
	return ok
}

// matchesChild evaluates the handler's filter for children. A filter that fails counts as not matching: the error is
// logged, and the child is skipped until its next change.
func (h *ChildHandling) matchesChild(ctx context.Context, handler *adapters.HandlerChain, one pendingChild) bool {
	filter := handler.Description.ChildFilter
	if filter == nil {
		return true
	}
	ok, err := handler.Description.CallCriterion("filter of children", func() (bool, error) {
		child, err := one.object.Body()
		if err != nil {
			return false, err
		}
		return filter(ctx, child)
	})
	if err != nil {
		logf.FromContext(ctx).Error(err, "Filter of children failed; not calling the handler for the child",
			append(panics.StackFields(err), "handler", handler.Description.ID, "child", one.object.GetName())...)
	}
	return ok
}

// callForChild calls the handler for one child.
func (h *ChildHandling) callForChild(
	ctx context.Context, handler *adapters.HandlerChain, one pendingChild, result *ChildResult,
) {
	body := result.Body
	child, err := one.object.Body()
	if err != nil {
		logf.FromContext(ctx).Error(err, "Cannot read a child; not calling the handler for it",
			"handler", handler.Description.ID)
		return
	}
	c := &cause.Cause{EventType: one.eventType, Object: jsontext.NewFromValue(body),
		Deleting: patching.IsBeingDeleted(body)}
	a := h.NewAttempt(handler.Description, c, body)
	// The account is that of this child: each child has its own retries.
	a.Account, a.Due, a.IsOutcomeDeferred, a.Now = one.account, true, true, currentTime
	a.Call.LatestState, a.Call.Child = h.Cache, child
	running, cancel := adapters.FunctionContext(ctx)
	defer cancel(nil)
	uid := types.UID(patching.ObjectUID(body))
	// If the child is deleted during the call, its deletion must still be reported.
	h.Children.beginCall(handler.Description, one)
	defer h.Children.endCall(uid, handler.Description, one)
	handler.RunAttempt(running, a)
	h.Journal.ForBody(body).RecordAttempt(a)
	// The attempt does not count, for example because the operator exits. The child stays pending.
	if a.Outcome.Aborted && !a.Outcome.Blocked {
		return
	}
	// A failed write makes the attempt fail, because its changes are lost.
	if err := h.writeChanges(ctx, a, result); err != nil {
		a.Outcome = a.Limits.OutcomeOf(err)
		h.Journal.ForBody(body).RecordAttempt(a)
		logf.FromContext(ctx).Error(err, "Failed to write the changes of a child handler",
			"handler", handler.Description.ID)
	}
	a.ReportDecided()
	// A blocked attempt is not retried: it would fail again until the object changes. The child then counts as handled.
	if !a.Outcome.Final && !a.Outcome.Blocked {
		again := h.Children.noteRetry(handler.Description, one, a.Outcome)
		result.retryWithin(max(0, again.Until.Sub(currentTime())))
		return
	}
	h.Children.noteHandled(uid, handler.Description, one)
}

// writeChanges sends the changes and the result of a handler to the owner.
func (h *ChildHandling) writeChanges(ctx context.Context, a *execution.Attempt, result *ChildResult) error {
	patch := patching.Patch{Transforms: patching.ContainPanics(a.AllTransforms())}
	if err := patch.AddResult(a.Call.Handler.ID, a.ResultToWrite()); err != nil || patch.IsEmpty() {
		return err
	}
	return h.sendPatch(ctx, a.Call.Handler.ID, patch, result)
}

// sendPatch writes a patch of the owner for the handler with this id. The id is empty for writes of the framework.
func (h *ChildHandling) sendPatch(ctx context.Context, id string, patch patching.Patch, result *ChildResult) error {
	written, err := h.WritePatch(ctx, id, patching.Target{Body: result.Body}, patch)
	if err != nil {
		return err
	}
	if written.Body != nil {
		result.Body = written.Body
	}
	result.Released = result.Released || written.Released
	// The API server may have refused the write to /status only. To the handler, this is an error.
	return written.StatusRefusal
}
