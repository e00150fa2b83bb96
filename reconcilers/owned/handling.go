package owned

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

// Handling calls the handlers of one kind of owners for their children. Workers share it, and must not modify it.
type Handling struct {
	kind.Kind
	// Children holds the state of the children.
	Children *Children
	// Handlers are those for children, in the order of registration.
	Handlers []*adapters.Handler
}

// Result is the outcome of one pass over the children of an owner.
type Result struct {
	// Body is the owner after the last write; nil if there was none. Released reports that the write removed its last
	// finalizer.
	Body     map[string]any
	Released bool
	// After is the delay until the next pass without an event; nil is none.
	After *time.Duration
}

// Tend calls the handlers for the children that changed since their last call, stores how children have ended, and
// repairs drifted children. Changes that a handler makes to the owner are written when it returns.
func (h *Handling) Tend(ctx context.Context, body map[string]any) (result Result) {
	result.Body = body
	for _, handler := range h.Handlers {
		if handler.Description.Call != nil {
			h.tellAll(ctx, handler, &result)
		}
	}
	if h.goesOn(ctx, result) {
		h.remember(ctx, &result)
	}
	if h.goesOn(ctx, result) {
		if again := h.Children.Author.Repair(ctx, result.Body, h.Events); again != nil {
			result.postpone(*again)
		}
	}
	// An unchanged version means that no write changed the owner.
	if patching.VersionOf(result.Body) == patching.VersionOf(body) {
		result.Body = nil
	}
	return result
}

// tellAll calls the handler for each child with unhandled changes.
func (h *Handling) tellAll(ctx context.Context, handler *adapters.Handler, result *Result) {
	uid := types.UID(patching.UIDOf(result.Body))
	for _, one := range h.Children.pending(result.Body, handler.Description) {
		// A failed attempt for one child does not delay the others.
		if wait := one.account.Until.Sub(now()); wait > 0 {
			result.postpone(wait)
			continue
		}
		// Each call may change the owner, so the filters are evaluated again for each child.
		if !h.goesOn(ctx, *result) || !h.matches(ctx, handler, result.Body) {
			return
		}
		if h.wants(ctx, handler, one) {
			h.tell(ctx, handler, one, result)
		} else {
			// A child that the filter rejects counts as handled, until its next change.
			h.Children.told(uid, handler.Description, one)
		}
	}
}

// goesOn reports whether another step may begin for the owner. It is false after the release of the owner, during a
// pause, and when the operator exits.
func (h *Handling) goesOn(ctx context.Context, result Result) bool {
	return !result.Released && h.MayBegin(ctx)
}

// postpone lowers the delay until the next pass to this one, if it is shorter.
func (r *Result) postpone(delay time.Duration) {
	if r.After != nil {
		delay = min(delay, *r.After)
	}
	r.After = &delay
}

// matches evaluates the filters of the handler for the owner. A filter that fails counts as not matching.
func (h *Handling) matches(ctx context.Context, handler *adapters.Handler, body map[string]any) bool {
	ok, err := handler.Matches(ctx, &cause.Cause{Object: jsontext.Of(body), Deleting: patching.BeingDeleted(body)}, nil)
	if err != nil {
		logf.FromContext(ctx).Error(err, "Filter of a handler failed; not calling it for children",
			append(panics.Stack(err), "handler", handler.Description.ID)...)
	}
	return ok
}

// wants evaluates the handler's filter for children. A filter that fails counts as not matching: the error is logged,
// and the child is skipped until its next change.
func (h *Handling) wants(ctx context.Context, handler *adapters.Handler, one news) bool {
	filter := handler.Description.Wants
	if filter == nil {
		return true
	}
	ok, err := handler.Description.Ask("filter of children", func() (bool, error) {
		child, err := one.object.Body()
		if err != nil {
			return false, err
		}
		return filter(ctx, child)
	})
	if err != nil {
		logf.FromContext(ctx).Error(err, "Filter of children failed; not calling the handler for the child",
			append(panics.Stack(err), "handler", handler.Description.ID, "child", one.object.GetName())...)
	}
	return ok
}

// tell calls the handler for one child.
func (h *Handling) tell(ctx context.Context, handler *adapters.Handler, one news, result *Result) {
	body := result.Body
	child, err := one.object.Body()
	if err != nil {
		logf.FromContext(ctx).Error(err, "Cannot read a child; not calling the handler for it",
			"handler", handler.Description.ID)
		return
	}
	c := &cause.Cause{Type: one.kind, Object: jsontext.Of(body), Deleting: patching.BeingDeleted(body)}
	a := h.NewAttempt(handler.Description, c, body)
	// The account is that of this child: each child has its own retries.
	a.Account, a.Due, a.Deferred, a.Now = one.account, true, true, now
	a.Call.Newest, a.Call.Child = h.Cache, child
	running, cancel := adapters.Running(ctx)
	defer cancel(nil)
	uid := types.UID(patching.UIDOf(body))
	// If the child is deleted during the call, its deletion must still be reported.
	h.Children.begin(handler.Description, one)
	defer h.Children.end(uid, handler.Description, one)
	handler.Run(running, a)
	h.Journal.Of(body).Attempt(a)
	// The attempt does not count, for example because the operator exits. The child stays pending.
	if a.Outcome.Aborted && !a.Outcome.Blocked {
		return
	}
	// A failed write makes the attempt fail, because its changes are lost.
	if err := h.write(ctx, a, result); err != nil {
		a.Outcome = a.Limits.Judge(err)
		h.Journal.Of(body).Attempt(a)
		logf.FromContext(ctx).Error(err, "Failed to write the changes of a child handler",
			"handler", handler.Description.ID)
	}
	a.Decide()
	// A blocked attempt is not retried: it would fail again until the object changes. The child then counts as handled.
	if !a.Outcome.Final && !a.Outcome.Blocked {
		again := h.Children.retry(handler.Description, one, a.Outcome)
		result.postpone(max(0, again.Until.Sub(now())))
		return
	}
	h.Children.told(uid, handler.Description, one)
}

// write sends the changes and the result of a handler to the owner.
func (h *Handling) write(ctx context.Context, a *execution.Attempt, result *Result) error {
	patch := patching.Patch{Transforms: patching.Contained(a.Made())}
	if err := patch.AddResult(a.Call.Handler.ID, a.Result()); err != nil || patch.Empty() {
		return err
	}
	return h.send(ctx, a.Call.Handler.ID, patch, result)
}

// send writes a patch of the owner for the handler with this id. The id is empty for writes of the framework.
func (h *Handling) send(ctx context.Context, id string, patch patching.Patch, result *Result) error {
	written, err := h.Write(ctx, id, patching.Target{Body: result.Body}, patch, nil)
	switch {
	case err != nil:
		return err
	// The API server refused the write to /status. To the handler, this is an error.
	case written.StatusRefused != nil:
		return written.StatusRefused
	case written.Body != nil:
		result.Body = written.Body
	}
	result.Released = result.Released || written.Released
	return nil
}

// now returns the current time in UTC, as records store it.
func now() time.Time { return time.Now().UTC() }
