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

// A read that has waited for its cache this long looks whether that cannot be filled, and again after each polling.
// Caches of other namespaces that cannot be filled should not disturb one that can.
const (
	patience = 500 * time.Millisecond
	polling  = 100 * time.Millisecond
)

// cachedReader reads from the API server, or from the cache.
type cachedReader struct {
	reads        *CachedReads
	live, cached client.Reader
}

var _ client.Reader = cachedReader{}

// Get reads one object.
func (r cachedReader) Get(
	ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
) error {
	return r.read(ctx, obj, func(ctx context.Context, from client.Reader) error {
		return from.Get(ctx, key, obj, opts...)
	})
}

// List reads many objects.
func (r cachedReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return r.read(ctx, list, func(ctx context.Context, from client.Reader) error {
		return from.List(ctx, list, opts...)
	})
}

// read chooses where to read from. A cache that cannot be filled ends the context of the read.
func (r cachedReader) read(
	ctx context.Context, object runtime.Object, read func(ctx context.Context, from client.Reader) error,
) error {
	kind, err := apiutil.GVKForObject(object, r.reads.scheme)
	if err != nil {
		return err
	}
	if meta.IsListType(object) {
		kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	}
	if !r.reads.kinds[kind] {
		return read(ctx, r.live)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer time.AfterFunc(patience, func() { r.watchFilling(ctx, kind, cancel) }).Stop()
	err = read(ctx, r.cached)
	if cause := context.Cause(ctx); err != nil && cause != nil { // the cache says that it has waited
		return fmt.Errorf("reading %s from the cache, as Settings.CachedReads says: %w", kind, cause)
	}
	return err
}

// watchFilling ends a read that would wait in vain. Which cache it waits for is not known: there is one for each
// namespace and each form of an object.
func (r cachedReader) watchFilling(ctx context.Context, kind schema.GroupVersionKind, end context.CancelCauseFunc) {
	ticker := time.NewTicker(polling)
	defer ticker.Stop()
	for ctx.Err() == nil {
		if err := r.reads.failure(kind); err != nil {
			end(err)
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}
