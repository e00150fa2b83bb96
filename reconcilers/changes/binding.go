package changes

import (
	"strings"

	"github.com/kopf-runtime/kopf-runtime/internal/keys"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/storage"
)

// bindMemory adds the UID of the object to the patch: memory that is copied to another object is recognized by it.
func (o *object) bindMemory(patch *patching.Patch) error {
	uid, key := patching.ObjectUID(o.body), o.handling.bindingKey(o.storageBody)
	if o.handling.BoundTo == "" || uid == "" {
		return nil
	}
	if err := o.removeSeparateMemory(patch, key); err != nil || annotationsOf(o.body)[key] == uid {
		return err
	}
	fillMissingValues(patch.Merge, o.foreign)
	patch.SetIn([]string{"metadata", "annotations", key}, uid)
	prefix, _, _ := strings.Cut(o.handling.BoundTo, "/")
	if !keys.NeedsMarker(prefix) {
		return nil
	}
	return storage.SetAnnotationOnce(patch.Merge, o.body, keys.MarkerKey(prefix), keys.ManagedValue)
}

// removeSeparateMemory removes the separate memory once the object has its memory and its binding under the usual keys
// again.
func (o *object) removeSeparateMemory(patch *patching.Patch, binding string) error {
	bound, annotations, found := o.handling.InterimStorage.Bound, annotationsOf(o.body), false
	for name := range annotations { // for nearly all objects, the key need not be made
		found = found || bound != "" && name != binding && strings.HasPrefix(name, bound)
	}
	if !found {
		return nil
	}
	key := keys.KindBoundKey(o.body, bound)
	if key == binding || annotations[key] == nil {
		return nil
	}
	merge, err := o.handling.removalOfMemory(o.handling.withSeparateMemory(o.body))
	fillMissingValues(patch.Merge, merge)
	patch.SetIn([]string{"metadata", "annotations", key}, nil)
	return err
}

// unbindMemory removes the binding of an object without memory. Copied memory stays bound to the other object.
func (o *object) unbindMemory(patch *patching.Patch) {
	key := o.handling.bindingKey(o.storageBody)
	if o.foreign == nil && o.handling.BoundTo != "" && annotationsOf(o.body)[key] != nil {
		patch.SetIn([]string{"metadata", "annotations", key}, nil)
	}
}
