package kind

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/settings"
)

// Writer sends patches of one object, and reads it.
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

// Gate says whether anything may begin: not while the operator is paused.
type Gate interface {
	// Open reports whether another attempt may begin.
	Open() bool
	// Enter counts the beginning of a pass, a tick or a daemon, which makes attempts and writes their changes. It is
	// false, and counts nothing, if the gate is closed. Otherwise, Leave follows.
	Enter() bool
	Leave()
}

// Kind is what the handlers of one kind of objects share. Workers share it, and never modify it.
type Kind struct {
	settings.Settings
	// Resource is the resource of the objects. Nil is not known.
	Resource *discovery.Resource
	// Cache has the objects, for functions that run long.
	Cache Cache
	// Place is the worker's place that a call occupies; nil is none.
	Place execution.Place
	// Gate says whether calls may begin; nil is always.
	Gate Gate
	// Writer sends the patches; StatusSubresource says whether the status has a URL of its own.
	Writer            Writer
	StatusSubresource bool
	// Events posts Kubernetes events for the handlers.
	Events handlers.Poster
	// Journal records calls and writes; nil records nothing.
	Journal *journal.Kind
	// Clock gives the time; nil is the real one.
	Clock func() time.Time
}

// Now returns the time, in microseconds as it is stored.
func (k *Kind) Now() time.Time {
	if k.Clock != nil {
		return k.Clock().Truncate(time.Microsecond)
	}
	return time.Now().UTC().Truncate(time.Microsecond)
}

// MayBegin reports whether another call may begin: the operator neither exits nor is paused.
func (k *Kind) MayBegin(ctx context.Context) bool {
	return ctx.Err() == nil && (k.Gate == nil || k.Gate.Open())
}

// NewAttempt makes an attempt of a handler for the cause. The function gets the object, or, if it is nil, a copy of the
// object of the cause.
func (k *Kind) NewAttempt(h *handlers.Handler, c *cause.Cause, object map[string]any) *execution.Attempt {
	a := execution.New(h, c, object)
	a.Place, a.Limits.Backoff = k.Place, k.Backoff
	a.Call.Events, a.Call.Resource = k.Events, k.Resource
	return a
}

// Timeout returns a context for a request that goes on while the operator exits, within the WriteTimeout.
func (k *Kind) Timeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), k.WriteTimeout)
}

// Write sends a patch for the handler or the handlers of this name, and records that in the journal. It goes on while
// the operator exits. The errors are those of [patching.Writer.ApplyRetrying].
func (k *Kind) Write(
	ctx context.Context, by string, target patching.Target, patch patching.Patch, refetch patching.Refetch,
) (patching.Result, error) {
	ctx, cancel := k.Timeout(ctx)
	defer cancel()
	target.StatusSubresource = k.StatusSubresource
	result, err := k.Writer.ApplyRetrying(ctx, target, patch, refetch)
	k.Journal.Of(target.Body).Wrote(by, patch, target.Body, result, err)
	return result, err
}
