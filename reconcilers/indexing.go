package reconcilers

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	ownsource "github.com/kopf-runtime/kopf-runtime/reconcilers/source"
)

// indexing are the handlers that fill indices.
func indexing(own []*handlers.Handler) (all []*handlers.Handler) {
	for _, h := range own {
		if h.Family == handlers.Indexing {
			all = append(all, h)
		}
	}
	return all
}

// indexer is that of the scope; nil if there is nothing to be indexed. It outlives the service of the kind.
func (k *kind) indexer() *indexes.Indexer {
	filling := indexing(k.own)
	if len(filling) == 0 {
		return nil
	}
	held, _ := k.indexers.LoadOrStore(scope{k.GroupResource(), k.namespace}, &indexes.Indexer{})
	x, _ := held.(*indexes.Indexer)
	x.Begin(adapters.NewAll(filling, nil), k.Backoff, k.log)
	return x
}

// await makes all handlers wait for the indices of what is about to be served.
func (e *engine) await(ctx context.Context, all []wanted) {
	var kinds []string
	for _, w := range all {
		if len(indexing(w.own)) == 0 {
			continue
		}
		for _, namespace := range e.scopes(w.Namespaced) {
			kinds = append(kinds, scope{w.GroupResource(), namespace}.String())
		}
	}
	e.ready.begin(ctx, kinds)
}

// unawait is for a resource that is not served after all.
func (e *engine) unawait(r Resource) {
	for _, namespace := range e.scopes(r.Namespaced) {
		e.ready.done(scope{r.GroupResource(), namespace}.String())
	}
}

// String names the scope in messages.
func (s scope) String() string {
	if s.namespace == "" {
		return s.GroupResource.String()
	}
	return s.GroupResource.String() + " in " + s.namespace
}

// synced is a source that tells when the first listing is through.
type synced struct {
	source.TypedSyncingSource[ownsource.Request]
	done func()
}

// WaitForSync is that of the source.
func (s synced) WaitForSync(ctx context.Context) error {
	err := s.TypedSyncingSource.WaitForSync(ctx)
	if err == nil && ctx.Err() == nil { // the end of the context is no error to the source
		s.done()
	}
	return err
}

// listed is called when the first listing of the kind is through.
func (k *kind) listed() {
	if !k.synced() {
		return
	}
	for _, uid := range k.objects.missed(k.store.List()) {
		if k.Forget != nil {
			k.Forget(uid)
		}
	}
	if k.objects.indexer != nil {
		k.objects.indexer.Listed()
	}
	k.indexed()
}

// indexed ticks the kind off those that are waited for.
func (k *kind) indexed() { k.ready.done(scope{k.GroupResource(), k.namespace}.String()) }

// unlistable gives the indices up that could only be filled by somebody's doing: the others must not wait for that.
func (k *kind) unlistable(err error) {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		k.indexed()
	}
}
