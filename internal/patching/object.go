package patching

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"

	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

var finalizersPath = diff.Path{"metadata", "finalizers"}

// metadataOf returns the metadata of the body; nil if it does not have any.
func metadataOf(body map[string]any) map[string]any {
	metadata, _ := body["metadata"].(map[string]any)
	return metadata
}

// ObjectUID returns metadata.uid, and an empty string if the body does not have it.
func ObjectUID(body map[string]any) string {
	uid, _ := metadataOf(body)["uid"].(string)
	return uid
}

// ResourceVersion returns metadata.resourceVersion, and an empty string if the body does not have it.
func ResourceVersion(body map[string]any) string {
	version, _ := metadataOf(body)["resourceVersion"].(string)
	return version
}

// IsNewerVersion reports whether resource version a is later than b. It is false for versions that cannot be compared:
// empty ones, and those of an aggregated API server that does not use numbers.
func IsNewerVersion(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// sameObject reports whether the uids are equal. A body without a uid, such as in tests and of partial objects, matches
// every object.
func sameObject(a, b map[string]any) bool {
	return ObjectUID(a) == ObjectUID(b) || ObjectUID(a) == "" || ObjectUID(b) == ""
}

// describeObject returns the API version, kind and key of the object for errors.
func describeObject(body map[string]any) string {
	object := &unstructured.Unstructured{Object: body}
	return fmt.Sprintf("%s %s %s", object.GetAPIVersion(), object.GetKind(), cache.MetaObjectToName(object))
}

// releasesFinalizers reports whether the merge-patch removes finalizers from an object that is being deleted. A
// merge-patch of them cannot add any then, as the API server refuses that.
func releasesFinalizers(body, merge map[string]any) bool {
	_, touched := diff.ResolvePath(merge, finalizersPath)
	return touched && IsBeingDeleted(body)
}

// HasFinalizer reports whether the object has the finalizer.
func HasFinalizer(body map[string]any, name string) bool {
	return slices.Contains(finalizersOf(body), any(name))
}

// IsBeingDeleted reports whether the deletion of the object has been requested.
func IsBeingDeleted(body map[string]any) bool {
	return metadataOf(body)["deletionTimestamp"] != nil
}

// BlockDeletion returns a transformation that appends the finalizer to the list unless it is there. The API server
// refuses a new finalizer on an object that is being deleted.
func BlockDeletion(name string) Transform {
	return func(body map[string]any) error {
		if HasFinalizer(body, name) {
			return nil
		}
		metadata := metadataOf(body)
		if metadata == nil {
			metadata = map[string]any{}
			body["metadata"] = metadata
		}
		metadata["finalizers"] = append(slices.Clone(finalizersOf(body)), name)
		return nil
	}
}

// AllowDeletion returns a transformation that removes all occurrences of the finalizer. If the list becomes empty, it
// removes the list, and then the metadata if that becomes empty.
func AllowDeletion(name string) Transform {
	return func(body map[string]any) error {
		list := finalizersOf(body)
		if list == nil {
			return nil
		}
		left := slices.DeleteFunc(slices.Clone(list), func(item any) bool { return item == any(name) })
		if len(left) == 0 {
			storage.DropValue(body, finalizersPath)
			return nil
		}
		return storage.PutValue(body, finalizersPath, left)
	}
}

// GuardFinalizers restricts a handler's transformation to changing the finalizers of others. The operator's own
// finalizer stays if it is there. No finalizer is added twice, which can happen if the handler adds one to a list that
// is older than the body.
func GuardFinalizers(own string, change Transform) Transform {
	return func(body map[string]any) error {
		before := slices.Clone(finalizersOf(body))
		if err := change(body); err != nil {
			return err
		}
		after := finalizersOf(body)
		// The transformation did not change the finalizers, so they stay as they are, including duplicates.
		if slices.EqualFunc(before, after, func(a, b any) bool { return diff.Equal(a, b) }) {
			return nil
		}
		if len(after) > 0 {
			metadataOf(body)["finalizers"] = withoutRepeats(after)
		}
		if slices.Contains(before, any(own)) {
			return BlockDeletion(own)(body)
		}
		return nil
	}
}

// withoutRepeats returns the list without later duplicates.
func withoutRepeats(list []any) []any {
	distinct := make([]any, 0, len(list))
	for _, item := range list {
		if !slices.ContainsFunc(distinct, func(other any) bool { return diff.Equal(item, other) }) {
			distinct = append(distinct, item)
		}
	}
	return distinct
}

// finalizersOf returns the finalizers of the body. The list is shared with the body.
func finalizersOf(body map[string]any) []any {
	list, _ := metadataOf(body)["finalizers"].([]any)
	return list
}

// isReleased reports whether the write with this answer has deleted the object. The server deletes an object without
// finalizers in the same transaction, so the version of the answer never arrives in a watch. A grace period, such as
// that of pods, defers the deletion.
func isReleased(answer map[string]any) bool {
	if !IsBeingDeleted(answer) || len(finalizersOf(answer)) > 0 {
		return false
	}
	grace := metadataOf(answer)["deletionGracePeriodSeconds"]
	return grace == nil || diff.Equal(grace, int64(0))
}
