package draining

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterops"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// workers is how many objects are written at once.
const workers = 8

// errDeleting is the reason why an object that is being deleted is left.
var errDeleting = errors.New("it is being deleted, and its delete handlers have not finished: run them with " +
	"--deletions=run, or use --deletions=skip to release it without them")

// find finds the things on an object.
type find func(body map[string]any) (traces, error)

// drainKind drains the objects of a handled kind.
func (r *run) drainKind(ctx context.Context, kind *resolvedKind) {
	ids := slices.Compact(slices.Sorted(slices.Values(kind.ids)))
	err := r.drainList(ctx, kind.Resource, "", func(body map[string]any) (traces, error) {
		r.noteChildKinds(body)
		return r.tracesOf(body, ids)
	})
	if err != nil {
		r.leave(kind.GroupResource().String(), "objects", err)
	}
}

// drainList drains the objects of a resource in all namespaces of the drain. A non-empty label restricts it to the
// metadata of objects with this label. It returns the error of a list; errors of single objects are reported as left.
func (r *run) drainList(ctx context.Context, resource discovery.Resource, label string, found find) error {
	all, err := r.ObjectsOf(resource, label != "" || r.metadataOnly)
	if err != nil {
		return err
	}
	name, places := resource.GroupResource().String(), []string{metav1.NamespaceAll}
	if resource.Namespaced {
		places = r.places
	}
	r.current.Store(&name)
	of := objects{run: r, Objects: all, find: found}
	for _, namespace := range places {
		if err := of.drainNamespace(ctx, namespace, label); err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
	}
	return nil
}

// objects are the objects of one resource.
type objects struct {
	*run
	*clusterops.Objects

	find find
}

// drainNamespace drains the objects of one namespace, or of the whole cluster, several at once.
func (o *objects) drainNamespace(ctx context.Context, namespace, label string) (err error) {
	slots := make(chan struct{}, workers)
	var working sync.WaitGroup
	defer working.Wait()
	for begun := true; begun; {
		begun = false
		err = o.List(ctx, namespace, label, func(body map[string]any) error {
			begun = true
			slots <- struct{}{}
			working.Go(func() {
				defer func() { <-slots }()
				o.drainObject(ctx, body)
			})
			return nil
		})
		// A list of many objects can expire. Drained objects are not written again, so it can begin again.
		if !apierrors.IsResourceExpired(err) {
			break
		}
	}
	return err
}

// drainObject drains one object, and reports what happened to it.
func (o *objects) drainObject(ctx context.Context, body map[string]any) {
	t, err := o.findRemovable(body)
	name, found := describeObject(body), err != nil || !t.isEmpty()
	switch {
	case !found:
	case err == nil && o.Check:
		o.results.list(name, t.describe())
	case err == nil:
		err = o.removeRetrying(ctx, body, t)
	}
	if err != nil {
		o.leave(name, t.describe(), err)
	}
	o.count(o.Resource.GroupResource().String(), found, found && err == nil && !o.Check)
	o.keepForeign(t.foreign)
}

// findRemovable finds the things on an object. It is an error if they may not be removed now.
func (o *objects) findRemovable(body map[string]any) (traces, error) {
	t, err := o.find(body)
	if err == nil && t.finalizer && isDeleting(body) && !o.SkipDeletions {
		err = errDeleting
	}
	return t, err
}

// isDeleting reports whether the object is being deleted.
func isDeleting(body map[string]any) bool {
	return (&unstructured.Unstructured{Object: body}).GetDeletionTimestamp() != nil
}

// removeRetrying removes the things from the object. After a conflict, it looks for them on the newest state. An object
// that is gone has nothing left.
func (o *objects) removeRetrying(ctx context.Context, body map[string]any, t traces) error {
	isFirst, key := true, client.ObjectKeyFromObject(&unstructured.Unstructured{Object: body})
	return client.IgnoreNotFound(retry.RetryOnConflict(retry.DefaultRetry, func() (err error) {
		if !isFirst {
			if body, err = o.Get(ctx, key); err == nil {
				t, err = o.findRemovable(body)
			}
			if err != nil || t.isEmpty() {
				return err
			}
		}
		isFirst = false
		return o.remove(ctx, body, t)
	}))
}

// remove writes the removals. The status is first: without the finalizer, the object can disappear.
func (o *objects) remove(ctx context.Context, body map[string]any, t traces) error {
	if len(t.outside) > 0 {
		if err := progress.Flush(o.Progress); err != nil {
			return fmt.Errorf("removing records from the storage: %w", err)
		}
	}
	patch, of := t.places.pruned(body), &unstructured.Unstructured{Object: body}
	if status, ok := patch["status"]; ok && o.Resource.HasStatus() {
		delete(patch, "status")
		if err := o.patch(ctx, of, map[string]any{"status": status}, true); err != nil {
			return err
		}
	}
	if t.finalizer {
		metadata := metadataOf(patch)
		left := slices.DeleteFunc(of.GetFinalizers(), func(name string) bool { return name == o.Finalizer })
		if metadata["finalizers"] = left; len(left) == 0 {
			metadata["finalizers"] = nil
		}
	}
	if len(patch) == 0 {
		return nil
	}
	return o.patch(ctx, of, patch, false)
}

// patch sends a merge patch that is only valid for this object in this version.
func (o *objects) patch(ctx context.Context, of *unstructured.Unstructured, patch map[string]any, status bool) error {
	metadataOf(patch)["resourceVersion"] = of.GetResourceVersion()
	return o.Patch(ctx, of, patch, o.Name, status)
}

// metadataOf returns the metadata of a patch, which is added if it is missing.
func metadataOf(patch map[string]any) map[string]any {
	metadata, _ := patch["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		patch["metadata"] = metadata
	}
	return metadata
}

// describeObject names an object for people.
func describeObject(body map[string]any) string {
	kind := (&unstructured.Unstructured{Object: body}).GroupVersionKind().GroupKind()
	return kind.String() + " " + codec.ObjectName(body)
}
