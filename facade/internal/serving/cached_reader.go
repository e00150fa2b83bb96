package serving

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// A read that waits for its cache for the time of patience checks whether an informer of its kind fails, and again
// after each polling interval. The delay is for caches of other namespaces: if they fail, they should not disturb a
// read from a cache that is filled.
const (
	fillTimeout       = 500 * time.Millisecond
	fillCheckInterval = 100 * time.Millisecond
)

// cachedReader reads some kinds from the cache and all others from the API server.
type cachedReader struct {
	cachedReads            *CachedReads
	apiReader, cacheReader client.Reader
}

var _ client.Reader = cachedReader{}

// Get reads one object.
func (r cachedReader) Get(
	ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
) error {
	return r.readFromSource(ctx, obj, func(ctx context.Context, from client.Reader) error {
		return from.Get(ctx, key, obj, opts...)
	})
}

// List reads all matching objects.
func (r cachedReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return r.readFromSource(ctx, list, func(ctx context.Context, from client.Reader) error {
		return from.List(ctx, list, opts...)
	})
}

// readFromSource chooses the source of the read. It cancels a cached read whose cache cannot be filled, instead of
// blocking until the caller's context ends.
func (r cachedReader) readFromSource(
	ctx context.Context, object runtime.Object, read func(ctx context.Context, from client.Reader) error,
) error {
	kind, err := apiutil.GVKForObject(object, r.cachedReads.scheme)
	if err != nil {
		return err
	}
	// CachedReads contains the kinds of objects, not of lists.
	if meta.IsListType(object) {
		kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	}
	if !r.cachedReads.kinds[kind] {
		return read(ctx, r.apiReader)
	}
	// A read from a filled cache is fast, so the timer usually does not fire.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer time.AfterFunc(fillTimeout, func() { r.cancelIfUnfilled(ctx, kind, cancel) }).Stop()
	err = read(ctx, r.cacheReader)
	if cause := context.Cause(ctx); err != nil && cause != nil { // the cache only reports a timeout
		return fmt.Errorf("reading %s from the cache, as Settings.CachedReads says: %w", kind, cause)
	}
	return err
}

// cancelIfUnfilled cancels a read that would block forever. It checks all informers of the kind, because the one that
// blocks is not known: there is one for each namespace and each form of an object.
func (r cachedReader) cancelIfUnfilled(ctx context.Context, kind schema.GroupVersionKind, end context.CancelCauseFunc) {
	ticker := time.NewTicker(fillCheckInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		if err := r.cachedReads.syncFailure(kind); err != nil {
			end(err)
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}
