package codec

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Original is the object of a handler as it was before the call. It finds what the handler changes in the object
// without Patch.
type Original[T client.Object] struct {
	codec   *Codec[T]
	object  T // the handler may put another one into its field
	version string
	content map[string]any // as it was at the beginning, or after the last Patch
	changed []diff.Path    // in place
	failed  bool           // it does not encode: nothing can be told
}

// NewOriginal keeps the object as it is now.
func (c *Codec[T]) NewOriginal(object T) *Original[T] {
	o := &Original[T]{codec: c, object: object, version: object.GetResourceVersion()}
	o.Take()
	return o
}

// Take keeps the object as it is now. For nil, it does nothing.
func (o *Original[T]) Take() {
	if o == nil || o.failed {
		return
	}
	o.content = o.contentOf(o.object)
}

// Look finds the changes since the last call of Take. For nil, it does nothing.
func (o *Original[T]) Look() {
	if o == nil || o.failed {
		return
	}
	now := o.contentOf(o.object)
	if o.failed {
		return
	}
	known := map[string]bool{}
	for _, path := range o.changed {
		known[FormatPath(path)] = true
	}
	for _, item := range diff.Compute(o.content, now) {
		if len(known) == 0 || !known[FormatPath(item.Path)] {
			o.changed = append(o.changed, item.Path)
		}
	}
}

// Lost are the fields that the handler has changed in place and that are not written: what it had also put into a
// Patch, or undone, or written by a client, is as it should be. The object as it will be written is asked for if
// anything has changed.
func (o *Original[T]) Lost(body func() (map[string]any, error)) (fields []string) {
	o.Look()
	if o.failed || len(o.changed) == 0 || o.object.GetResourceVersion() != o.version {
		return nil
	}
	raw, err := body()
	if err != nil {
		return nil
	}
	written, err := o.codec.Decode(raw)
	if err != nil {
		return nil
	}
	have, want := o.contentOf(written), o.contentOf(o.object)
	for _, path := range o.changed {
		was, _ := diff.Resolve(have, path)
		is, _ := diff.Resolve(want, path)
		if !o.failed && !diff.Equal(was, is) {
			fields = append(fields, FormatPath(path))
		}
	}
	return fields
}

// contentOf encodes an object. Encoders are users' code, too.
func (o *Original[T]) contentOf(object T) (content map[string]any) {
	err := panics.Contain(func() (err error) { content, err = o.codec.Content(object); return err })
	o.failed = o.failed || err != nil
	return content
}
