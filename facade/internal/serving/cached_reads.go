package serving

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

// CachedReads is the client of a program: it reads the kinds that were named from the manager's cache, and all others
// from the API server. Only named kinds are cached, because a cache must be allowed to list and watch a whole kind. A
// cached read never waits for a cache that cannot be filled: it returns an error with the reason.
type CachedReads struct {
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

// CachedKind returns the kind of an object that names a kind to be cached.
func CachedKind(object client.Object, scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(object, scheme)
}

// NewCachedReads returns a client that reads the kinds of these objects from the cache. It returns an error for a kind
// that the scheme does not have.
func NewCachedReads(scheme *runtime.Scheme, cached []client.Object) (*CachedReads, error) {
	r := &CachedReads{
		scheme: scheme, kinds: map[schema.GroupVersionKind]bool{},
		informers: map[schema.GroupVersionKind][]*informer{},
	}
	for _, object := range cached {
		kind, err := CachedKind(object, scheme)
		if err != nil {
			return nil, err
		}
		r.kinds[kind] = true
	}
	return r, nil
}

// Configure has a manager's client read so.
func (r *CachedReads) Configure(options *ctrl.Options) {
	options.NewClient = r.newClient
	options.Cache.NewInformer = r.newInformer
}

// newClient makes the client of the manager.
func (r *CachedReads) newClient(config *rest.Config, options client.Options) (client.Client, error) {
	live, err := client.New(config, client.Options{
		HTTPClient: options.HTTPClient, Scheme: options.Scheme, Mapper: options.Mapper,
	})
	if err != nil {
		return nil, err
	}
	options.Cache = &client.CacheOptions{
		Reader: cachedReader{reads: r, live: live, cached: options.Cache.Reader}, Unstructured: true,
	}
	return client.New(config, options)
}

// newInformer makes an informer of the manager's cache, and notes what it fails of.
func (r *CachedReads) newInformer(
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
func (r *CachedReads) failure(kind schema.GroupVersionKind) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.informers[kind] {
		if one.err != nil && !one.synced() {
			return fmt.Errorf("it cannot be filled: %w", one.err)
		}
	}
	return nil
}
