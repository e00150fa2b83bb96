package facadetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
)

// childInformers takes the place of the informers of child kinds during one call. A nil pointer does nothing.
type childInformers struct {
	client client.Client
	kinds  []schema.GroupVersionKind
	source *owned.ChildSource

	mu             sync.Mutex
	listedChildren map[types.UID]*unstructured.Unstructured // the children at the last listing
	err            error
}

// syncChildren lists the children and reports them, and those that have disappeared since the last listing, to the
// engine.
func (w *childInformers) syncChildren(ctx context.Context) {
	if w == nil || len(w.kinds) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	there := map[types.UID]*unstructured.Unstructured{}
	for _, kind := range w.kinds {
		all := &unstructured.UnstructuredList{}
		all.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := w.client.List(ctx, all); err != nil {
			// After a failed listing, the previous children are kept: the failure does not mean that they were deleted.
			err = fmt.Errorf("facadetest: listing the children of kind %s: %w", kind.Kind, err)
			w.err = errors.Join(w.err, err)
			return
		}
		for i := range all.Items {
			child := &all.Items[i]
			if child.GetUID() == "" { // the fake client assigns no uids
				// Objects of different kinds can have the same name, so the kind is a part of the uid.
				child.SetUID(types.UID(kind.Kind+"-") + uidOf(child))
			}
			there[child.GetUID()] = child
			w.deliverEvent(owned.Listed, child)
		}
	}
	// A deletion is only visible by comparison with the last listing.
	for uid, child := range w.listedChildren {
		if there[uid] == nil {
			w.deliverEvent(owned.Deleted, child)
		}
	}
	w.listedChildren = there
}

// findCachedObject returns an object from the last listing, or nil. It is the cache lookup of kopf.WaitFor.
func (w *childInformers) findCachedObject(kind schema.GroupKind, key types.NamespacedName) *compact.CachedObject {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, object := range w.listedChildren {
		if object.GroupVersionKind().GroupKind() == kind && client.ObjectKeyFromObject(object) == key {
			found, err := compact.NewFromBody(object.Object)
			if err != nil {
				w.err = errors.Join(w.err, fmt.Errorf("facadetest: reading an object: %w", err))
			}
			return found
		}
	}
	return nil
}

func (w *childInformers) deliverEvent(event string, child *unstructured.Unstructured) {
	// The caller holds the lock. A failed event is an error of the test, as the handler would see a stale child.
	seen, err := compact.NewFromBody(child.Object)
	if err == nil {
		err = w.source.HandleEvent(event, seen)
	}
	if err != nil {
		w.err = errors.Join(w.err, fmt.Errorf("facadetest: reading a child: %w", err))
	}
}

// syncError returns the errors of all listings. With a failed listing, the handler has seen stale children.
func (w *childInformers) syncError() error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// relistingClient is a client that lists the children again after each of its writes. The fake client assigns a new
// resourceVersion even to a write without changes: the cached child would then be older than the last write, and the
// engine would treat it as stale permanently.
type relistingClient struct {
	client.Client

	relist func(ctx context.Context)
}

// Create creates the object and lists the children again.
func (w relistingClient) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	defer w.relist(ctx)
	return w.Client.Create(ctx, object, options...)
}

// Update updates the object and lists the children again.
func (w relistingClient) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	defer w.relist(ctx)
	return w.Client.Update(ctx, object, options...)
}

// Patch patches the object and lists the children again.
func (w relistingClient) Patch(
	ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption,
) error {
	defer w.relist(ctx)
	return w.Client.Patch(ctx, object, patch, options...)
}

// Apply applies the configuration and lists the children again.
func (w relistingClient) Apply(
	ctx context.Context, configuration runtime.ApplyConfiguration, options ...client.ApplyOption,
) error {
	defer w.relist(ctx)
	return w.Client.Apply(ctx, configuration, options...)
}

// Delete deletes the object and lists the children again.
func (w relistingClient) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	defer w.relist(ctx)
	return w.Client.Delete(ctx, object, options...)
}

// unwatchedMessage is a part of the error of kopf.WaitFor for a kind that the operator does not watch.
const unwatchedMessage = "are not watched: register Owns"

// errUnwatched is added to that error: in a test, the operator may watch the kind, and only the option is missing.
var errUnwatched = errors.New("facadetest: if the operator does so, pass facadetest.Owns with the kind to NewChange")

// registerChildKinds registers the kinds of the [Owns] and [Watches] options, as the operator does.
func (t *trial[T]) registerChildKinds(selection kopf.Selection[T]) {
	for _, name := range []string{optOwns, optWatches} {
		if t.options.isGiven(name) && t.options.client == nil {
			panicMisuse("%s: %s says which objects are watched, and Client has them: pass both", t.constructor, name)
		}
	}
	for _, kind := range t.watchedKinds(optOwns, t.options.owns) {
		selection.Owns(emptyObjectOf(kind))
	}
	for _, kind := range t.watchedKinds(optWatches, t.options.watches) {
		selection.Watches(emptyObjectOf(kind))
	}
}

// watchedKinds returns the kinds of the empty objects that an option has received. It panics for kinds that the client
// cannot list.
func (t *trial[T]) watchedKinds(by string, given []client.Object) (all []schema.GroupVersionKind) {
	for _, object := range given {
		if object == nil {
			panicMisuse("%s: %s: a kind is nil: give an empty object of it, such as &appsv1.Deployment{}",
				t.constructor, by)
		}
		kind := kindOf(t.constructor+": "+by, object, t.options.client.Scheme())
		if kind.Group == unknownGroup {
			panicMisuse("%s: %s: the scheme of the client does not know a %T: add it there", t.constructor, by, object)
		}
		all = append(all, kind)
	}
	return all
}

// emptyObjectOf returns the argument for Selection.Owns.
func emptyObjectOf(kind schema.GroupVersionKind) *unstructured.Unstructured {
	empty := &unstructured.Unstructured{}
	empty.SetGroupVersionKind(kind)
	return empty
}

// unwatchedKindHint returns a hint for the test if the error is about an unwatched kind, else nil. The error has no
// exported value to compare with, so its text is searched.
func unwatchedKindHint(err error) error {
	if err == nil || !strings.Contains(err.Error(), unwatchedMessage) {
		return nil
	}
	return errUnwatched
}
