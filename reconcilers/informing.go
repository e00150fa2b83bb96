package reconcilers

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/queue"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/source"
)

// syncTimeout is practically none: a kind that may not be listed yet is waited for, not given up.
const syncTimeout = 365 * 24 * time.Hour

// newCache makes a cache of this kind alone. The mapper is static, so that the cache needs no discovery.
func (k *kind) newCache() (cache.Cache, error) {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{k.GroupVersion()})
	scope := meta.RESTScopeRoot
	if k.Namespaced {
		scope = meta.RESTScopeNamespace
	}
	plural := k.GroupVersion().WithResource(k.Plural)
	mapper.AddSpecific(k.GroupVersionKind, plural, plural, scope)
	options := cache.Options{
		HTTPClient: k.manager.GetHTTPClient(), Scheme: k.manager.GetScheme(), Mapper: mapper,
		ReaderFailOnMissingInformer: false, DefaultTransform: cache.TransformStripManagedFields(),
		DefaultWatchErrorHandler: k.watchFailed(),
	}
	if k.namespace != "" {
		options.DefaultFieldSelector = fields.OneTermEqualSelector("metadata.namespace", k.namespace)
	}
	return cache.New(k.manager.GetConfig(), options)
}

func (k *kind) newController() (controller.TypedController[source.Request], error) {
	skip := true
	options := controller.TypedOptions[source.Request]{
		Reconciler: dispatcher{k}, MaxConcurrentReconciles: 1, SkipNameValidation: &skip, CacheSyncTimeout: syncTimeout,
		LogConstructor: func(*source.Request) logr.Logger { return k.log },
		NewQueue: func(
			_ string, limiter workqueue.TypedRateLimiter[source.Request],
		) workqueue.TypedRateLimitingInterface[source.Request] {
			waiting := queue.New(k.workers.places, limiter)
			k.queue.Store(waiting)
			return waiting
		},
	}
	options.DefaultFromConfig(k.manager.GetControllerOptions())
	// Handlers have timeouts of their own; the end of a pass's context means that the operator exits.
	options.ReconciliationTimeout = 0
	return controller.NewTypedUnmanaged(k.Name+"."+k.Plural, options)
}

// watchFailed reports once for each reason that the kind cannot be listed or watched, and again if it could be
// meanwhile. The informer goes on trying. Whether the kind is still there is for the API server's lists to say.
func (k *kind) watchFailed() toolscache.WatchErrorHandlerWithContext {
	var last, seen string
	return func(ctx context.Context, r *toolscache.Reflector, err error) {
		version := r.LastSyncResourceVersion()
		k.unlistable(err)
		switch {
		case ctx.Err() != nil:
			return
		case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
			return // the informer was too slow, and lists all again: this happens to everybody
		case apierrors.IsNotFound(err):
			k.serving.doubt()
		}
		if err.Error() == last && version == seen {
			return
		}
		last, seen = err.Error(), version
		k.log.Error(err, "A kind cannot be listed or watched now; its handlers wait. Check the permissions and the CRD",
			"handlers", k.handling.IDs())
	}
}
