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

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/resync"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
)

var resource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// Watcher watches the namespaces of a cluster, and keeps nothing of them but the names that are served.
type Watcher struct {
	// Client lists and watches namespaces.
	Client dynamic.Interface
	// Patterns say which are served. The API server selects by their labels.
	Patterns Patterns
	// Serve is called with all names that are served: at first, and after each change; one call at a time.
	Serve func(names []string)

	known atomic.Bool // they were listed once
	said  string      // what was logged last, and at which version of the list
}

// Run watches until the context ends. Where namespaces may not be listed, those that are named in full are served,
// until they may be. Other errors only delay it.
func (w *Watcher) Run(ctx context.Context) {
	for ctx.Err() == nil {
		w.runOnce(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(resync.Interval):
		}
	}
}

// runOnce watches until the context ends, or the first list is refused.
func (w *Watcher) runOnce(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen := &observation{served: NewServed(w.Patterns...), leaving: map[string]*time.Timer{}, serve: w.Serve}
	defer seen.end()
	informer := toolscache.NewSharedIndexInformer(w.lister(), &unstructured.Unstructured{}, 0, nil)
	// Neither fails before the informer is started.
	_ = informer.SetTransform(essential)
	_ = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, r *toolscache.Reflector, err error) {
		if w.failed(ctx, err, r.LastSyncResourceVersion()) {
			cancel()
		}
	})
	events, err := informer.AddEventHandler(seen)
	if err != nil {
		logf.FromContext(ctx).Error(err, "Cannot watch namespaces")
		return
	}
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	defer running.Wait()
	if toolscache.WaitForCacheSync(ctx.Done(), events.HasSynced) {
		w.known.Store(true)
		seen.begin()
	}
	<-ctx.Done()
}

// failed tells of an error, again if there was none in between, and whether it is of no use to go on at once. What was
// listed before is served still.
func (w *Watcher) failed(ctx context.Context, err error, version string) (end bool) {
	if ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return false
	}
	known := w.known.Load()
	refused := apierrors.IsForbidden(err) && !known
	if refused {
		defer w.Serve(w.Patterns.Named())
	}
	if w.said == err.Error()+version {
		return refused
	}
	w.said = err.Error() + version
	log := logf.FromContext(ctx)
	switch {
	case refused:
		logging.Warn(log, "Not allowed to list namespaces, so only those are served that are named in full. Let the "+
			"operator list and watch namespaces, if others match",
			"namespaces", w.Patterns.Named(), "patterns", w.Patterns.Texts(), "reason", err.Error())
	case known:
		logging.Warn(log, "Cannot watch namespaces; those that appear or vanish are not noticed until that works again",
			"reason", err.Error())
	default:
		log.Error(err, "Cannot list namespaces; none is served until that works", "patterns", w.Patterns.Texts())
	}
	return refused
}

func (w *Watcher) lister() *toolscache.ListWatch {
	selector := textOf(w.Patterns.Labels())
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = selector
			return w.Client.Resource(resource).List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = selector
			return w.Client.Resource(resource).Watch(ctx, o)
		},
	}
}

// essential keeps of a namespace what [Served] looks at.
func essential(object any) (any, error) {
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
