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

// CachedReads is the client of a program. It reads the given kinds from the manager's cache, and all others from the
// API server. Only given kinds are cached, because a cache requires the permission to list and watch all objects of a
// kind. A cached read does not block on a cache that cannot be filled: it returns an error with the reason.
//
// For that, it creates the informers of the cache itself and records their errors. controller-runtime only retries, and
// its reads block until the context ends.
type CachedReads struct {
	scheme *runtime.Scheme
	// kinds are the kinds that are read from the cache. They do not change after the start.
	kinds map[schema.GroupVersionKind]bool

	// mu guards informers and their errors. Reflectors report errors from their own goroutines.
	mu        sync.Mutex
	informers map[schema.GroupVersionKind][]*informer
}

// informer fills one cache of a kind. A kind has several informers if there are several namespaces, or if it is read in
// several forms: typed, unstructured or as metadata.
type informer struct {
	hasSynced func() bool
	err       error // the last error of a list or watch
}

// NewCachedReads returns a client that reads the kinds of these objects from the cache. It returns an error for a kind
// that is not in the scheme.
func NewCachedReads(scheme *runtime.Scheme, cached []client.Object) (*CachedReads, error) {
	r := &CachedReads{
		scheme: scheme, kinds: map[schema.GroupVersionKind]bool{},
		informers: map[schema.GroupVersionKind][]*informer{},
	}
	for _, object := range cached {
		kind, err := apiutil.GVKForObject(object, scheme)
		if err != nil {
			return nil, err
		}
		r.kinds[kind] = true
	}
	return r, nil
}

// ConfigureManager makes the manager's client read in this way.
func (r *CachedReads) ConfigureManager(options *ctrl.Options) {
	options.NewClient = r.newClient
	options.Cache.NewInformer = r.newInformer
}

// newClient returns the client of the manager.
func (r *CachedReads) newClient(config *rest.Config, options client.Options) (client.Client, error) {
	live, err := client.New(config, client.Options{
		HTTPClient: options.HTTPClient, Scheme: options.Scheme, Mapper: options.Mapper,
	})
	if err != nil {
		return nil, err
	}
	// The cachedReader decides itself what to cache. Unstructured objects would otherwise always be read live.
	options.Cache = &client.CacheOptions{
		Reader: cachedReader{cachedReads: r, apiReader: live, cacheReader: options.Cache.Reader}, Unstructured: true,
	}
	return client.New(config, options)
}

// newInformer returns an informer of the manager's cache. It records why the informer fails to list or watch.
func (r *CachedReads) newInformer(
	source toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	made := toolscache.NewSharedIndexInformer(source, object, resync, indexers)
	kind, err := apiutil.GVKForObject(object, r.scheme)
	if err != nil {
		return made // the cache itself reports the error
	}
	own := &informer{hasSynced: made.HasSynced}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.informers[kind] = append(r.informers[kind], own)
	// This only fails for an informer that has started, and this one has not.
	_ = made.SetWatchErrorHandlerWithContext(func(ctx context.Context, from *toolscache.Reflector, err error) {
		// The default handler logs the error.
		toolscache.DefaultWatchErrorHandler(ctx, from, err)
		r.mu.Lock()
		defer r.mu.Unlock()
		own.err = err
	})
	return made
}

// syncFailure returns the reason why a cache of the kind cannot be filled at present. It returns nil if all caches are
// filled or being filled.
func (r *CachedReads) syncFailure(kind schema.GroupVersionKind) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.informers[kind] {
		// A synced informer still serves its objects, even if its watch has failed since.
		if one.err != nil && !one.hasSynced() {
			return fmt.Errorf("it cannot be filled: %w", one.err)
		}
	}
	return nil
}
