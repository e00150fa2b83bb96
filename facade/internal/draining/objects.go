package draining

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

const (
	// pageSize is the number of objects in one list request, and workers is how many of them are written at once.
	pageSize = 500
	workers  = 8
	// attempts limits how often the write of one object is repeated after conflicts.
	attempts = 5
)

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
	of := objects{run: r, resource: resource, find: found, partial: label != "" || r.metadataOnly}
	r.progress.begin(resource.GroupResource().String())
	places := []string{metav1.NamespaceAll}
	if resource.Namespaced {
		places = r.places
	}
	for _, namespace := range places {
		if err := of.drainNamespace(ctx, namespace, label); err != nil {
			return err
		}
	}
	return nil
}

// objects are the objects of one resource.
type objects struct {
	*run

	resource discovery.Resource
	find     find
	partial  bool // only the metadata is needed
}

// drainNamespace drains the objects of one namespace, or of the whole cluster.
func (o *objects) drainNamespace(ctx context.Context, namespace, label string) error {
	options := metav1.ListOptions{LabelSelector: label, Limit: pageSize}
	for ctx.Err() == nil {
		page, next, err := o.readPage(ctx, namespace, options)
		// The continuation has expired. Drained objects are not written again, so the list can begin again.
		if apierrors.IsResourceExpired(err) && options.Continue != "" {
			options.Continue = ""
			continue
		}
		if err != nil {
			return err
		}
		o.drainPage(ctx, page)
		if options.Continue = next; next == "" {
			return nil
		}
	}
	return context.Cause(ctx)
}

// readPage returns one page of objects.
func (o *objects) readPage(
	ctx context.Context, namespace string, options metav1.ListOptions,
) (page []map[string]any, next string, err error) {
	if !o.partial {
		list, err := o.full.Resource(o.resource.GroupVersionResource()).Namespace(namespace).List(ctx, options)
		if err != nil {
			return nil, "", err
		}
		for _, one := range list.Items {
			page = append(page, o.complete(one.Object))
		}
		return page, list.GetContinue(), nil
	}
	list, err := o.bare.Resource(o.resource.GroupVersionResource()).Namespace(namespace).List(ctx, options)
	if err != nil {
		return nil, "", err
	}
	for i := range list.Items {
		body, err := o.bodyOf(&list.Items[i])
		if err != nil {
			return nil, "", err
		}
		page = append(page, body)
	}
	return page, list.Continue, nil
}

// complete sets the kind, which items of lists can lack. The names of annotations can depend on it.
func (o *objects) complete(body map[string]any) map[string]any {
	body["apiVersion"], body["kind"] = o.resource.GroupVersion().String(), o.resource.Kind
	return body
}

// bodyOf returns metadata in the form of an object.
func (o *objects) bodyOf(one *metav1.PartialObjectMetadata) (map[string]any, error) {
	one.ManagedFields = nil // they are large, and not needed
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(one)
	if err != nil {
		return nil, fmt.Errorf("decoding the metadata of %s: %w", one.Name, err)
	}
	return o.complete(body), nil
}

// drainPage drains the objects of a page, several at once.
func (o *objects) drainPage(ctx context.Context, page []map[string]any) {
	places := make(chan struct{}, workers)
	var working sync.WaitGroup
	defer working.Wait()
	for _, body := range page {
		places <- struct{}{}
		working.Go(func() {
			defer func() { <-places }()
			o.drainObject(ctx, body)
		})
	}
}

// drainObject drains one object, and reports what happened to it.
func (o *objects) drainObject(ctx context.Context, body map[string]any) {
	t, err := o.find(body)
	name, found := describeObject(body), err != nil || !t.isEmpty()
	switch {
	case !found:
	case err == nil && t.finalizer && isDeleting(body) && !o.SkipDeletions:
		err = errDeleting
	case err == nil && o.Check:
		o.results.list(name, t.describe())
	case err == nil:
		err = o.removeRetrying(ctx, body, t)
	}
	if err != nil {
		o.leave(name, t.describe(), err)
	}
	o.count(o.resource.GroupResource().String(), found, found && err == nil && !o.Check)
	o.keepForeign(t.foreign)
}

// isDeleting reports whether the object is being deleted.
func isDeleting(body map[string]any) bool {
	return (&unstructured.Unstructured{Object: body}).GetDeletionTimestamp() != nil
}

// removeRetrying removes the things from the object. After a conflict, it looks for them on the newest state.
func (o *objects) removeRetrying(ctx context.Context, body map[string]any, t traces) (err error) {
	for range attempts {
		err = o.remove(ctx, body, t)
		if apierrors.IsNotFound(err) {
			return nil // the object is gone
		}
		if !apierrors.IsConflict(err) {
			return err
		}
		if body, err = o.get(ctx, body); apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			t, err = o.find(body)
		}
		switch {
		case err != nil:
			return err
		case t.isEmpty():
			return nil
		case t.finalizer && isDeleting(body) && !o.SkipDeletions:
			return errDeleting
		}
	}
	return err
}

// get reads the newest state of the object.
func (o *objects) get(ctx context.Context, body map[string]any) (map[string]any, error) {
	of := &unstructured.Unstructured{Object: body}
	if !o.partial {
		newest, err := o.full.Resource(o.resource.GroupVersionResource()).Namespace(of.GetNamespace()).
			Get(ctx, of.GetName(), metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return o.complete(newest.Object), nil
	}
	newest, err := o.bare.Resource(o.resource.GroupVersionResource()).Namespace(of.GetNamespace()).
		Get(ctx, of.GetName(), metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return o.bodyOf(newest)
}

// remove writes the removals. The status is first: without the finalizer, the object can disappear.
func (o *objects) remove(ctx context.Context, body map[string]any, t traces) error {
	if len(t.outside) > 0 {
		if err := progress.Flush(o.Progress); err != nil {
			return fmt.Errorf("removing records from the storage: %w", err)
		}
	}
	patch, of := t.places.pruned(body), &unstructured.Unstructured{Object: body}
	version := of.GetResourceVersion()
	if status, ok := patch["status"]; ok && o.resource.HasStatus() {
		delete(patch, "status")
		written, err := o.patch(ctx, of, map[string]any{"status": status}, version, "status")
		if err != nil {
			return err
		}
		version = written.GetResourceVersion()
	}
	if t.finalizer {
		left := slices.DeleteFunc(of.GetFinalizers(), func(name string) bool { return name == o.Finalizer })
		metadata, _ := patch["metadata"].(map[string]any)
		if metadata == nil {
			metadata = map[string]any{}
			patch["metadata"] = metadata
		}
		if metadata["finalizers"] = left; len(left) == 0 {
			metadata["finalizers"] = nil
		}
	}
	if len(patch) == 0 {
		return nil
	}
	_, err := o.patch(ctx, of, patch, version)
	return err
}

// patch sends a merge-patch that is only valid for this object in this version.
func (o *objects) patch(
	ctx context.Context, of *unstructured.Unstructured, patch map[string]any, version string, subresources ...string,
) (*unstructured.Unstructured, error) {
	metadata, _ := patch["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		patch["metadata"] = metadata
	}
	metadata["uid"], metadata["resourceVersion"] = string(of.GetUID()), version
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encoding a patch: %w", err)
	}
	var client dynamic.ResourceInterface = o.full.Resource(o.resource.GroupVersionResource())
	if of.GetNamespace() != "" {
		client = o.full.Resource(o.resource.GroupVersionResource()).Namespace(of.GetNamespace())
	}
	return client.Patch(ctx, of.GetName(), types.MergePatchType, data,
		metav1.PatchOptions{FieldManager: o.Name}, subresources...)
}
