package owned

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

// Writer sends patches of one object, and reads it anew.
type Writer interface {
	Get(ctx context.Context, gvk schema.GroupVersionKind, key client.ObjectKey) (map[string]any, error)
	ApplyRetrying(
		ctx context.Context, target patching.Target, patch patching.Patch, refetch patching.Refetch,
	) (patching.Result, error)
}

// Cache has objects as they are by now. Any goroutine may ask.
type Cache interface {
	// Latest is the newest known state of an object; nil if there is none. It is shared.
	Latest(key types.NamespacedName, uid types.UID) map[string]any
}

// Handling calls the tending handlers of one kind of owners. Workers share it, and never modify it.
type Handling struct {
	// Children are what is known of those of the owners.
	Children *Children
	// Handlers are the tending ones, in the order of registration.
	Handlers []*adapters.Handler
	// Place is the worker's place that a call occupies; nil is none.
	Place execution.Place
	// Resource is what the owners are; Cache has them. Nil is not known.
	Resource *discovery.Resource
	Cache    Cache
	// Open tells whether calls may begin: not while the operator is paused. Nil is always.
	Open func() bool
	// Writer sends the handlers' patches; StatusSubresource says whether the status has a URL of its own.
	Writer            Writer
	StatusSubresource bool
	// WriteTimeout limits a write, which goes on while the operator exits.
	WriteTimeout time.Duration
	// Backoff is the default delay after ordinary errors; zero is 60 seconds.
	Backoff time.Duration
	// Events posts Kubernetes events for the handlers.
	Events handlers.Poster
	// Journal is told of the calls, and of what is written for them; nil is not.
	Journal *journal.Kind
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
		if again := h.Children.Repairer.Repair(ctx, result.Body, h.Events); again != nil {
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
	return !result.Released && ctx.Err() == nil && (h.Open == nil || h.Open())
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
		logf.FromContext(ctx).Error(err, "Filter of a handler failed; not telling it of children",
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
		logf.FromContext(ctx).Error(err, "Filter of children failed; not telling the handler of the child",
			append(panics.Stack(err), "handler", handler.Description.ID, "child", one.object.GetName())...)
	}
	return ok
}

// tell calls the handler for one child.
func (h *Handling) tell(ctx context.Context, handler *adapters.Handler, one news, result *Result) {
	body := result.Body
	child, err := one.object.Body()
	if err != nil {
		logf.FromContext(ctx).Error(err, "Cannot read a child; not telling the handler of it",
			"handler", handler.Description.ID)
		return
	}
	c := &cause.Cause{Type: one.kind, Object: jsontext.Of(body), Deleting: patching.BeingDeleted(body)}
	a := execution.New(handler.Description, c, body)
	a.Account, a.Due, a.Now, a.Place, a.Limits.Backoff = one.account, true, now, h.Place, h.Backoff
	a.Call.Events, a.Call.Resource, a.Call.Newest = h.Events, h.Resource, h.Cache
	a.Call.Child, a.Deferred = child, true
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
		logf.FromContext(ctx).Error(err, "Failed to write the changes of a handler that was told of a child",
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.WriteTimeout)
	defer cancel()
	known := &unstructured.Unstructured{Object: result.Body}
	refetch := func(ctx context.Context) (map[string]any, error) {
		return h.Writer.Get(ctx, known.GroupVersionKind(), client.ObjectKeyFromObject(known))
	}
	target := patching.Target{Body: result.Body, StatusSubresource: h.StatusSubresource}
	written, err := h.Writer.ApplyRetrying(ctx, target, patch, refetch)
	h.Journal.Of(result.Body).Wrote(id, patch, result.Body, written, err)
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
