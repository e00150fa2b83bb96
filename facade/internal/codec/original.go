package codec

import (
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/internal/panics"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Original is the object of a handler before the call. It detects changes that the handler makes in the object without
// Patch: these are not written. Such a mistake is easy to make, because it has no effect and no error.
type Original[T client.Object] struct {
	codec           *Codec[T]
	object          T // the original pointer: the handler may assign another object to its field
	resourceVersion string
	content         map[string]any // the content at the beginning or after the last Patch
	changedPaths    []diff.Path    // paths that were changed in place
	hasEncodeError  bool           // the object does not encode, so changes cannot be detected
}

// NewOriginal records the current content of the object.
func (c *Codec[T]) NewOriginal(object T) *Original[T] {
	o := &Original[T]{codec: c, object: object, resourceVersion: object.GetResourceVersion()}
	o.RecordContent()
	return o
}

// RecordContent records the current content of the object as the new basis. It does nothing for nil.
func (o *Original[T]) RecordContent() {
	if o == nil || o.hasEncodeError {
		return
	}
	o.content = o.contentOf(o.object)
}

// DetectChanges adds the changes since the last [Original.RecordContent] to the changed paths. It does nothing for nil.
func (o *Original[T]) DetectChanges() {
	if o == nil || o.hasEncodeError {
		return
	}
	now := o.contentOf(o.object)
	if o.hasEncodeError {
		return
	}
	// A path is recorded once, although it can change before and after a Patch.
	known := map[string]bool{}
	for _, path := range o.changedPaths {
		known[FormatPath(path)] = true
	}
	// The values are not stored: Lost compares the final state.
	for _, item := range diff.Compute(o.content, now) {
		if len(known) == 0 || !known[FormatPath(item.Path)] {
			o.changedPaths = append(o.changedPaths, item.Path)
		}
	}
}

// LostFields returns the fields that the handler has changed in place and that will not be written. Fields that it has
// also patched, reverted, or written by a client are not lost. Body returns the object as it will be written; it is
// called only if something has changed.
func (o *Original[T]) LostFields(body func() (map[string]any, error)) (fields []string) {
	o.DetectChanges()
	// A new resourceVersion means that the handler has written the object by a client.
	if o.hasEncodeError || len(o.changedPaths) == 0 || o.object.GetResourceVersion() != o.resourceVersion {
		return nil
	}
	raw, err := body()
	if err != nil {
		return nil
	}
	// Both objects are compared in the form of T, so that fields unknown to T do not count.
	written, err := o.codec.Decode(raw)
	if err != nil {
		return nil
	}
	have, want := o.contentOf(written), o.contentOf(o.object)
	for _, path := range o.changedPaths {
		was, _ := diff.ResolvePath(have, path)
		is, _ := diff.ResolvePath(want, path)
		if !o.hasEncodeError && !diff.Equal(was, is) {
			fields = append(fields, FormatPath(path))
		}
	}
	return fields
}

// contentOf encodes an object. Encoders can be users' code, so panics are contained.
func (o *Original[T]) contentOf(object T) (content map[string]any) {
	err := panics.Contain(func() (err error) { content, err = o.codec.comparableContent(object); return err })
	o.hasEncodeError = o.hasEncodeError || err != nil
	return content
}

// comparableContent returns the raw form of an object without its identity and without empty values. It is the basis
// for finding changes: the difference between a nil list, an empty list, null and an absent field is not one.
func (c *Codec[T]) comparableContent(object T) (map[string]any, error) {
	tree, err := c.encodeRaw(object)
	if err != nil {
		return nil, err
	}
	// Kind and version belong to the identity, which a change cannot alter.
	delete(tree, "apiVersion")
	delete(tree, "kind")
	// The API server changes these fields with each write.
	metadata, _ := tree["metadata"].(map[string]any)
	for _, key := range serverFields {
		delete(metadata, key)
	}
	// An empty field and an absent one count as the same content.
	content, _ := RemoveEmpty(tree).(map[string]any)
	if content == nil {
		content = map[string]any{}
	}
	if content["metadata"] == nil {
		content["metadata"] = map[string]any{} // makes a first label a difference in the labels alone
	}
	return content, nil
}

// RemoveEmpty removes nulls and empty maps and lists in place. It returns nil if nothing is left. Items of lists keep
// their positions.
func RemoveEmpty(value any) any {
	switch value := value.(type) {
	case map[string]any:
		maps.DeleteFunc(value, func(_ string, field any) bool { return RemoveEmpty(field) == nil })
		if len(value) == 0 {
			return nil
		}
	case []any:
		for i, item := range value {
			// Removing an item would move the others.
			value[i] = RemoveEmpty(item)
		}
		if len(value) == 0 {
			return nil
		}
	}
	return value
}
