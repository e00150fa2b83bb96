package cachedreads

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

// polling is how often a read that waits for its cache to be filled looks whether that fails.
const polling = 100 * time.Millisecond

// reader reads live, or from the cache.
type reader struct {
	reads        *Reads
	live, cached client.Reader
}

var _ client.Reader = reader{}

// Get reads one object.
func (r reader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return r.read(ctx, obj, func(ctx context.Context, from client.Reader) error {
		return from.Get(ctx, key, obj, opts...)
	})
}

// List reads many objects.
func (r reader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return r.read(ctx, list, func(ctx context.Context, from client.Reader) error {
		return from.List(ctx, list, opts...)
	})
}

// read chooses where to read from. A cache that cannot be filled ends the context of the read.
func (r reader) read(
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
	if filled, _ := r.reads.state(kind); !filled {
		go r.watchFilling(ctx, kind, cancel)
	}
	err = read(ctx, r.cached)
	if cause := context.Cause(ctx); err != nil && cause != nil { // the cache says that it has waited
		return fmt.Errorf("reading %s from the cache, as Settings.CachedReads says: %w", kind, cause)
	}
	return err
}

// watchFilling ends a read that would wait in vain.
func (r reader) watchFilling(ctx context.Context, kind schema.GroupVersionKind, end context.CancelCauseFunc) {
	ticker := time.NewTicker(polling)
	defer ticker.Stop()
	for {
		filled, err := r.reads.state(kind)
		if err != nil {
			end(err)
		}
		if filled {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
