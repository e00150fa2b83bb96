package namespaces

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	toolscache "k8s.io/client-go/tools/cache"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/internal/transport"
)

// retryInterval is the time between two attempts to list namespaces without the permission.
const retryInterval = 5 * time.Minute

// namespaceResource identifies namespaces for the dynamic client.
var namespaceResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// NamespaceWatcher watches the namespaces of a cluster and reports which are served. Its cache keeps only the fields
// that decide this.
type NamespaceWatcher struct {
	// Client lists and watches namespaces.
	Client dynamic.Interface
	// Patterns select the namespaces. The API server filters by their labels, the watcher by their names.
	Patterns Patterns
	// Serve is called with all served names: first after the listing, then after each change. Calls do not overlap.
	Serve func(names []string)

	hasListed       atomic.Bool // the namespaces were listed once
	lastLoggedError string      // the last logged error with the version of the list, to log it once
}

// Run watches until the context ends. If the operator is not allowed to list namespaces, it serves those that are named
// in full, and retries the listing. Other errors only delay it.
func (w *NamespaceWatcher) Run(ctx context.Context) {
	for ctx.Err() == nil {
		w.runOnce(ctx)
		_ = transport.WaitDelay(ctx, retryInterval)
	}
}

// runOnce watches until the context ends, or until the first listing is forbidden. An informer cannot be restarted, so
// each attempt uses a new one.
func (w *NamespaceWatcher) runOnce(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen := &observation{served: NewServed(w.Patterns...), leaving: map[string]*time.Timer{}, report: w.Serve}
	defer seen.stopReporting()
	informer := toolscache.NewSharedIndexInformer(w.newListWatch(), &unstructured.Unstructured{}, 0, nil)
	// Both setters return errors only after the informer was started.
	_ = informer.SetTransform(keepEssentials)
	_ = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, r *toolscache.Reflector, err error) {
		// The informer retries by itself. Ending the context is the only way to stop it after a refusal.
		if w.handleError(ctx, err, r.LastSyncResourceVersion()) {
			cancel()
		}
	})
	events, err := informer.AddEventHandler(seen)
	if err != nil {
		logf.FromContext(ctx).Error(err, "Cannot watch namespaces")
		return
	}
	var running sync.WaitGroup
	// The informer must have stopped before Run starts the next one, or both would report names.
	running.Go(func() { informer.RunWithContext(ctx) })
	defer running.Wait()
	if toolscache.WaitForCacheSync(ctx.Done(), events.HasSynced) {
		w.hasListed.Store(true)
		seen.startReporting()
	}
	<-ctx.Done()
}

// handleError logs an error of the informer, and returns whether this run must end because the listing is forbidden. It
// logs an equal error again only if the informer made progress in between. Namespaces that were listed before are still
// served.
func (w *NamespaceWatcher) handleError(ctx context.Context, err error, version string) (end bool) {
	// The end of the context is not an error. After an expired version, the informer lists again at once.
	if ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return false
	}
	known := w.hasListed.Load()
	// After a successful listing, the known namespaces stay served.
	refused := apierrors.IsForbidden(err) && !known
	if refused {
		defer w.Serve(w.Patterns.ExactNames())
	}
	if w.lastLoggedError == err.Error()+version {
		return refused
	}
	w.lastLoggedError = err.Error() + version
	log := logf.FromContext(ctx)
	switch {
	case refused:
		logging.Warn(log, "Not allowed to list namespaces, so only those are served that are named in full. Let the "+
			"operator list and watch namespaces, if others match",
			"namespaces", w.Patterns.ExactNames(), "patterns", w.Patterns.Texts(), "reason", err.Error())
	case known:
		logging.Warn(log, "Cannot watch namespaces; those that appear or vanish are not noticed until that works again",
			"reason", err.Error())
	default:
		log.Error(err, "Cannot list namespaces; none is served until that works", "patterns", w.Patterns.Texts())
	}
	return refused
}

// newListWatch returns the requests of the informer, with the label selector of the patterns.
func (w *NamespaceWatcher) newListWatch() *toolscache.ListWatch {
	selector := selectorText(w.Patterns.LabelSelector())
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = selector
			return w.Client.Resource(namespaceResource).List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = selector
			return w.Client.Resource(namespaceResource).Watch(ctx, o)
		},
	}
}

// keepEssentials reduces a namespace to the fields that [ServedNamespaces] reads, and those that the informer needs.
// Other fields of a namespace never influence the set.
func keepEssentials(object any) (any, error) {
	namespace, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	kept := &unstructured.Unstructured{Object: map[string]any{}}
	kept.SetName(namespace.GetName())
	kept.SetUID(namespace.GetUID())
	kept.SetResourceVersion(namespace.GetResourceVersion())
	kept.SetDeletionTimestamp(namespace.GetDeletionTimestamp())
	if conditions, has, _ := unstructured.NestedFieldNoCopy(namespace.Object, "status", "conditions"); has {
		kept.Object["status"] = map[string]any{"conditions": conditions}
	}
	return kept, nil
}
