package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/background"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/queue"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/source"
)

// restartPause is how long a kind that failed as a whole waits before it starts anew.
const restartPause = 10 * time.Second

// store is the part of an informer's index that is read.
type store interface {
	GetByKey(key string) (item any, exists bool, err error)
	List() []any
}

// kind is one resource in one scope, with its cache and its queue.
type kind struct {
	*engine
	Resource
	namespace string
	log       logr.Logger
	handling  *changes.Handling
	own       []*handlers.Handler
	objects   *objects
	store     store
	synced    func() bool // whether the store is complete
	crew      *background.Crew
	workers   *workers
	queue     atomic.Pointer[queue.Queue]
	passes    sync.WaitGroup // that are running
}

func (e *engine) newKind(r Resource, namespace string, own []*handlers.Handler, w *workers) *kind {
	k := &kind{
		engine: e, Resource: r, namespace: namespace, workers: w, own: own, log: e.log.WithValues("kind", r.Kind),
		handling: e.handling(r, own, w.occupation), objects: e.memory(scope{r.GroupResource(), namespace}, own),
		crew: e.crew(scope{r.GroupResource(), namespace}),
	}
	k.objects.raw = e.rawEvents(r, own, w.occupation)
	if len(spawning(own)) > 0 {
		k.handling.Background = k.crew
	}
	k.objects.forgotten = k.forget
	return k
}

func hasResume(own []*handlers.Handler) bool {
	for _, h := range own {
		if h.Initial {
			return true
		}
	}
	return false
}

// serve runs the kind until the context ends. A failure of the kind ends nothing else.
func (k *kind) serve(ctx context.Context) {
	ctx = logf.IntoContext(ctx, k.log)
	for ctx.Err() == nil {
		err := k.run(ctx)
		if ctx.Err() != nil {
			return
		}
		k.log.Error(err, "A kind cannot be served now; it will be tried again", "after", restartPause.String())
		select {
		case <-ctx.Done():
		case <-time.After(restartPause):
		}
	}
}

func (k *kind) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	objects, err := k.newCache()
	if err != nil {
		return fmt.Errorf("making the cache of %s: %w", k.GroupVersionKind, err)
	}
	ended := make(chan error, 1)
	go func() {
		defer cancel(errMoved) // a controller without its cache would wait for ever
		ended <- objects.Start(ctx)
	}()
	err = k.control(ctx, objects)
	cancel(nil)
	return errors.Join(err, <-ended)
}

// control runs the controller on a cache until the context ends.
func (k *kind) control(ctx context.Context, objects cache.Cache) error {
	prototype := &unstructured.Unstructured{}
	prototype.SetGroupVersionKind(k.GroupVersionKind)
	informer, err := objects.GetInformer(ctx, prototype, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("making the informer of %s: %w", k.GroupVersionKind, err)
	}
	indexed, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		return fmt.Errorf("the informer of %s has no index: %T", k.GroupVersionKind, informer)
	}
	k.store, k.synced = indexed.GetIndexer(), indexed.HasSynced
	defer k.staff(ctx)()
	c, err := k.newController()
	if err != nil {
		return fmt.Errorf("making the controller of %s: %w", k.GroupVersionKind, err)
	}
	k.objects.indexer = k.indexer()
	if err := c.Watch(
		synced{ctrlsource.TypedKind(objects, prototype, source.Events{Watcher: k.objects}), k.listed},
	); err != nil {
		return fmt.Errorf("watching %s: %w", k.GroupVersionKind, err)
	}
	defer func() {
		if indexed.HasSynced() {
			k.objects.endListing()
			k.objects.leave(k.store.List())
		}
		if errors.Is(context.Cause(ctx), errVanished) {
			k.vanish()
		}
	}()
	err = c.Start(ctx)
	k.passes.Wait() // the controller itself has only handed them over
	return err
}
