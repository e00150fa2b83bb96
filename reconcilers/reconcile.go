package reconcilers

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/source"
)

var _ reconcile.TypedReconciler[source.Request] = (*kind)(nil)

// Reconcile makes one pass over one object. Errors never leave it: they are logged once, and delay this object alone.
func (k *kind) Reconcile(ctx context.Context, request source.Request) (reconcile.Result, error) {
	if request.Handler != "" {
		k.fire(request)
		return reconcile.Result{}, nil
	}
	defer k.farewell(request)
	cached := k.cached(request)
	k.deliver(
		logf.IntoContext(ctx, k.log.WithValues("namespace", request.Namespace, "name", request.Name)), request, cached,
	)
	if cached == nil {
		return reconcile.Result{}, nil
	}
	uid := cached.GetUID()
	o := k.objects.take(uid)
	if o.past(cached) || !k.still(request, uid) {
		return reconcile.Result{}, nil
	}
	if wait := o.throttle.wait(time.Now()); wait > 0 {
		return k.again(request, wait), nil
	}
	log := k.log.WithValues("namespace", request.Namespace, "name", request.Name)
	ctx = logf.IntoContext(ctx, log)
	next, err := k.handling.Reconcile(ctx, o.newest(cached), &o.memory)
	o.proceed(cached, next, k.cached(request))
	result := k.judge(ctx, request, o, next, err)
	k.objects.put(uid, o)
	// If the object went during the pass, nobody else forgets what the pass kept.
	if !k.still(request, uid) {
		k.objects.gone(uid)
	}
	return result, nil
}

// still tells whether the cache has the object still. The memory of an object ends after the cache has lost it: if it
// was found in the cache before, but no memory of it was found after that, it may be gone, and handled.
func (k *kind) still(request source.Request, uid types.UID) bool {
	cached := k.cached(request)
	return cached != nil && cached.GetUID() == uid
}

// cached is the object as the cache has it; nil if it has none. It is shared: nobody modifies it.
func (k *kind) cached(request source.Request) *unstructured.Unstructured {
	// An index of the usual kind has no errors, and a cache of this kind nothing else in it.
	found, _, _ := k.store.GetByKey(toolscache.NewObjectName(request.Namespace, request.Name).String())
	object, _ := found.(*unstructured.Unstructured)
	return object
}

// judge turns the end of a pass into what the queue must do.
func (k *kind) judge(
	ctx context.Context, request source.Request, o *object, next changes.Next, err error,
) reconcile.Result {
	var blocked *changes.BlockedError
	switch {
	case errors.As(err, &blocked):
		if o.blocked != err.Error() {
			logf.FromContext(ctx).Error(err, "The object cannot be handled until it is changed",
				append(panics.Stack(err), "handlers", k.handling.IDs())...)
		}
		o.blocked = err.Error()
		o.throttle.succeed()
		return reconcile.Result{}
	case err != nil:
		log := logf.FromContext(ctx).WithValues(append(panics.Stack(err), "handlers", k.handling.IDs())...)
		if o.repeats(err) {
			log = logr.Discard()
		}
		delay, repeated := o.throttle.fail(k.errorDelays(), time.Now())
		if !repeated {
			log.Error(err, "The object cannot be handled now; it waits for its next event")
			return reconcile.Result{}
		}
		log.Error(err, "The object cannot be handled now; it will be tried again", "after", delay.String())
		return k.again(request, delay)
	}
	o.blocked, o.panicked = "", ""
	o.throttle.succeed()
	if next.After != nil {
		return k.again(request, *next.After)
	}
	return reconcile.Result{}
}

// again comes back after a delay, as a retry: the priority of the event that led here would stick otherwise.
func (k *kind) again(request source.Request, delay time.Duration) reconcile.Result {
	priority := k.priority(request, source.PriorityRetry)
	return reconcile.Result{RequeueAfter: max(delay, time.Nanosecond), Priority: &priority}
}

// priority is that of all requests for an object that is being deleted or gone, of whatever kind they are.
func (k *kind) priority(request source.Request, otherwise int) int {
	if cached := k.cached(request); cached == nil || cached.GetDeletionTimestamp() != nil {
		return source.PriorityDeletion
	}
	return otherwise
}

func idsOf(own []*handlers.Handler) []string {
	ids := make([]string, 0, len(own))
	for _, h := range own {
		ids = append(ids, h.ID)
	}
	return ids
}
