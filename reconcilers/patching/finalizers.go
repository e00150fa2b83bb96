package patching

import (
	"slices"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

var (
	finalizersPath = diff.Path{"metadata", "finalizers"}
	deletionPath   = diff.Path{"metadata", "deletionTimestamp"}
	gracePath      = diff.Path{"metadata", "deletionGracePeriodSeconds"}
)

// HasFinalizer tells whether the object's deletion is held back by the finalizer of this name.
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

// AllowDeletion removes all occurrences of the finalizer. A list with nothing left in it goes as a whole, and so do
// metadata with nothing else in them.
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

func finalizers(body map[string]any) []any {
	value, _ := diff.Resolve(body, finalizersPath)
	list, _ := value.([]any)
	return list
}

// released tells whether this answer is the last that was heard of the object: the server deletes it in the same
// transaction, so the version of the answer never arrives in a watch. A grace period, as pods have, defers that.
func released(answer map[string]any) bool {
	if !BeingDeleted(answer) || len(finalizers(answer)) > 0 {
		return false
	}
	grace, _ := diff.Resolve(answer, gracePath)
	return grace == nil || diff.Equal(grace, int64(0))
}
