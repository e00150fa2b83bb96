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

// Handling calls the tending handlers of one kind of owners. Workers share it, and never modify it.
type Handling struct {
	kind.Kind
	// Children are what is known of those of the owners.
	Children *Children
	// Handlers are the tending ones, in the order of registration.
	Handlers []*adapters.Handler
}

// Result is what came of a look at the children of one owner.
type Result struct {
	// Body is the owner after the last write; nil if there was none. Released tells that the write let it go.
	Body     map[string]any
	Released bool
	// After is when to look again without any event; nil is never.
	After *time.Duration
}

// Tend calls the handlers for the children that are not as they were when the handlers were called last. What a handler
// does to the owner is written when it has returned. Then children are repaired.
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
	if patching.VersionOf(result.Body) == patching.VersionOf(body) {
		result.Body = nil
	}
	return result
}

// tellAll calls the handler for the children that are not as it knows them.
func (h *Handling) tellAll(ctx context.Context, handler *adapters.Handler, result *Result) {
	uid := types.UID(patching.UIDOf(result.Body))
	for _, one := range h.Children.pending(result.Body, handler.Description) {
		if wait := one.account.Until.Sub(now()); wait > 0 {
			result.postpone(wait)
			continue
		}
		if !h.goesOn(ctx, *result) || !h.matches(ctx, handler, result.Body) {
			return
		}
		if h.wants(ctx, handler, one) {
			h.tell(ctx, handler, one, result)
		} else {
			h.Children.told(uid, handler.Description, one)
		}
	}
}

// goesOn tells whether anything more may begin for the owner.
func (h *Handling) goesOn(ctx context.Context, result Result) bool {
	return !result.Released && h.MayBegin(ctx)
}

func (r *Result) postpone(delay time.Duration) {
	if r.After != nil {
		delay = min(delay, *r.After)
	}
	r.After = &delay
}

// matches asks the filters of the handler about the owner.
func (h *Handling) matches(ctx context.Context, handler *adapters.Handler, body map[string]any) bool {
	ok, err := handler.Matches(ctx, &cause.Cause{Object: jsontext.Of(body), Deleting: patching.BeingDeleted(body)}, nil)
	if err != nil {
		logf.FromContext(ctx).Error(err, "Filter of a handler failed; not calling it for children",
			append(panics.Stack(err), "handler", handler.Description.ID)...)
	}
	return ok
}

// wants asks the filter of the children.
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
	a.Account, a.Due, a.Deferred, a.Now = one.account, true, true, now
	a.Call.Newest, a.Call.Child = h.Cache, child
	running, cancel := adapters.Running(ctx)
	defer cancel(nil)
	uid := types.UID(patching.UIDOf(body))
	h.Children.begin(handler.Description, one)
	defer h.Children.end(uid, handler.Description, one)
	handler.Run(running, a)
	h.Journal.Of(body).Attempt(a)
	if a.Outcome.Aborted && !a.Outcome.Blocked {
		return
	}
	if err := h.write(ctx, a, result); err != nil {
		a.Outcome = a.Limits.Judge(err)
		h.Journal.Of(body).Attempt(a)
		logf.FromContext(ctx).Error(err, "Failed to write the changes of a child handler",
			"handler", handler.Description.ID)
	}
	a.Decide()
	if !a.Outcome.Final && !a.Outcome.Blocked {
		again := h.Children.retry(handler.Description, one, a.Outcome)
		result.postpone(max(0, again.Until.Sub(now())))
		return
	}
	h.Children.told(uid, handler.Description, one)
}

// write sends what the handler does to the owner.
func (h *Handling) write(ctx context.Context, a *execution.Attempt, result *Result) error {
	patch := patching.Patch{Transforms: patching.Contained(a.Made())}
	if err := patch.AddResult(a.Call.Handler.ID, a.Result()); err != nil || patch.Empty() {
		return err
	}
	return h.send(ctx, a.Call.Handler.ID, patch, result)
}

// send writes a patch of the owner, for the handler with this id.
func (h *Handling) send(ctx context.Context, id string, patch patching.Patch, result *Result) error {
	written, err := h.Write(ctx, id, patching.Target{Body: result.Body}, patch, nil)
	switch {
	case err != nil:
		return err
	case written.StatusRefused != nil:
		return written.StatusRefused
	case written.Body != nil:
		result.Body = written.Body
	}
	result.Released = result.Released || written.Released
	return nil
}

func now() time.Time { return time.Now().UTC() }
