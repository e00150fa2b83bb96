package patching

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

var (
	finalizersPath = diff.Path{"metadata", "finalizers"}
	deletionPath   = diff.Path{"metadata", "deletionTimestamp"}
	gracePath      = diff.Path{"metadata", "deletionGracePeriodSeconds"}
)

// UIDOf gives metadata.uid, empty if the body has none.
func UIDOf(body map[string]any) string {
	metadata, _ := body["metadata"].(map[string]any)
	uid, _ := metadata["uid"].(string)
	return uid
}

// VersionOf gives metadata.resourceVersion, empty if the body has none.
func VersionOf(body map[string]any) string {
	metadata, _ := body["metadata"].(map[string]any)
	version, _ := metadata["resourceVersion"].(string)
	return version
}

// Newer tells whether resource version a is later than b. Versions that cannot be compared (an empty one, or those of
// an aggregated API server that does not number them) are not newer than each other.
func Newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// sameObject compares the uids. A body without one, as of tests and partial objects, matches every object.
func sameObject(a, b map[string]any) bool {
	return UIDOf(a) == UIDOf(b) || UIDOf(a) == "" || UIDOf(b) == ""
}

// describe names the object in errors.
func describe(body map[string]any) string {
	object := &unstructured.Unstructured{Object: body}
	return fmt.Sprintf("%s %s %s", object.GetAPIVersion(), object.GetKind(), trimmedKey(object))
}

func trimmedKey(object *unstructured.Unstructured) string {
	if object.GetNamespace() == "" {
		return object.GetName()
	}
	return client.ObjectKeyFromObject(object).String()
}

// releases tells whether the merge-patch takes finalizers from an object that is being deleted: no others may be added.
func releases(body, merge map[string]any) bool {
	_, touched := diff.Resolve(merge, finalizersPath)
	return touched && BeingDeleted(body)
}

// HasFinalizer tells whether the object has the finalizer of this name.
func HasFinalizer(body map[string]any, name string) bool {
	return slices.Contains(finalizers(body), any(name))
}

// BeingDeleted tells whether the deletion of the object has been requested.
func BeingDeleted(body map[string]any) bool {
	stamp, _ := diff.Resolve(body, deletionPath)
	return stamp != nil
}

// BlockDeletion adds the finalizer to the end of the list, unless it is there. The API server refuses a new finalizer
// on an object that is being deleted.
func BlockDeletion(name string) Transform {
	return func(body map[string]any) error {
		if HasFinalizer(body, name) {
			return nil
		}
		metadata, ok := body["metadata"].(map[string]any)
		if !ok || metadata == nil {
			metadata = map[string]any{}
			body["metadata"] = metadata
		}
		metadata["finalizers"] = append(slices.Clone(finalizers(body)), name)
		return nil
	}
}

// AllowDeletion removes all occurrences of the finalizer. It also removes the list, and then the metadata, if they are
// empty after that.
func AllowDeletion(name string) Transform {
	return func(body map[string]any) error {
		metadata, ok := body["metadata"].(map[string]any)
		if !ok {
			return nil
		}
		if _, ok := metadata["finalizers"].([]any); !ok {
			return nil
		}
		left := slices.DeleteFunc(slices.Clone(finalizers(body)), func(item any) bool { return item == any(name) })
		if len(left) == 0 {
			delete(metadata, "finalizers")
			if len(metadata) == 0 {
				delete(body, "metadata")
			}
			return nil
		}
		metadata["finalizers"] = left
		return nil
	}
}

// GuardFinalizers lets a transformation of a handler change the finalizers of others, and no more: the named one, by
// which the operator holds the object, stays as long as it is there; and the transformation adds no finalizer twice,
// such as when it adds one to a list that is older than the body.
func GuardFinalizers(own string, change Transform) Transform {
	return func(body map[string]any) error {
		before := slices.Clone(finalizers(body))
		if err := change(body); err != nil {
			return err
		}
		after := finalizers(body)
		if slices.EqualFunc(before, after, func(a, b any) bool { return diff.Equal(a, b) }) {
			return nil
		}
		if metadata, ok := body["metadata"].(map[string]any); ok && len(after) > 0 {
			metadata["finalizers"] = withoutRepeats(after)
		}
		if slices.Contains(before, any(own)) {
			return BlockDeletion(own)(body)
		}
		return nil
	}
}

func withoutRepeats(list []any) []any {
	distinct := make([]any, 0, len(list))
	for _, item := range list {
		if !slices.ContainsFunc(distinct, func(other any) bool { return diff.Equal(item, other) }) {
			distinct = append(distinct, item)
		}
	}
	return distinct
}

func finalizers(body map[string]any) []any {
	value, _ := diff.Resolve(body, finalizersPath)
	list, _ := value.([]any)
	return list
}

// released tells whether the write that got this answer has deleted the object: the server deletes it in the same
// transaction, so the version of the answer never arrives in a watch. A grace period, as of pods, defers the deletion.
func released(answer map[string]any) bool {
	if !BeingDeleted(answer) || len(finalizers(answer)) > 0 {
		return false
	}
	grace, _ := diff.Resolve(answer, gracePath)
	return grace == nil || diff.Equal(grace, int64(0))
}
