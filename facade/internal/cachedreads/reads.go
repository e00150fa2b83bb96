package cachedreads

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Reads are how one program reads.
type Reads struct {
	scheme *runtime.Scheme
	kinds  map[schema.GroupVersionKind]bool

	mu        sync.Mutex
	informers map[schema.GroupVersionKind][]*informer
}

// informer is what fills one cache of a kind. There are several where there are several namespaces, or where the kind
// is read in several forms.
type informer struct {
	synced func() bool
	err    error // the last one
}

// Kind is that of an object that names a kind to be cached.
func Kind(object client.Object, scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(object, scheme)
}

// New makes Reads that take the kinds of these objects from the cache. It is an error if the scheme does not know one.
func New(scheme *runtime.Scheme, cached []client.Object) (*Reads, error) {
	r := &Reads{
		scheme: scheme, kinds: map[schema.GroupVersionKind]bool{},
		informers: map[schema.GroupVersionKind][]*informer{},
	}
	for _, object := range cached {
		kind, err := Kind(object, scheme)
		if err != nil {
			return nil, err
		}
		r.kinds[kind] = true
	}
	return r, nil
}

// Configure has a manager's client read so.
func (r *Reads) Configure(options *ctrl.Options) {
	options.NewClient = r.newClient
	options.Cache.NewInformer = r.newInformer
}

// newClient makes the client of the manager.
func (r *Reads) newClient(config *rest.Config, options client.Options) (client.Client, error) {
	live, err := client.New(config, client.Options{
		HTTPClient: options.HTTPClient, Scheme: options.Scheme, Mapper: options.Mapper,
	})
	if err != nil {
		return nil, err
	}
	options.Cache = &client.CacheOptions{
		Reader: reader{reads: r, live: live, cached: options.Cache.Reader}, Unstructured: true,
	}
	return client.New(config, options)
}

// newInformer makes an informer of the manager's cache, and notes what it fails of.
func (r *Reads) newInformer(
	source toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	made := toolscache.NewSharedIndexInformer(source, object, resync, indexers)
	kind, err := apiutil.GVKForObject(object, r.scheme)
	if err != nil {
		return made // the cache fails for it by itself
	}
	own := &informer{synced: made.HasSynced}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.informers[kind] = append(r.informers[kind], own)
	// It fails for an informer that has started, which this one has not.
	_ = made.SetWatchErrorHandlerWithContext(func(ctx context.Context, from *toolscache.Reflector, err error) {
		toolscache.DefaultWatchErrorHandler(ctx, from, err)
		r.mu.Lock()
		defer r.mu.Unlock()
		own.err = err
	})
	return made
}

// failure is why a cache of a kind cannot be filled at present; nil if all are filled, or are about to be.
func (r *Reads) failure(kind schema.GroupVersionKind) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.informers[kind] {
		if one.err != nil && !one.synced() {
			return fmt.Errorf("it cannot be filled: %w", one.err)
		}
	}
	return nil
}
