package kopf

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

// GetObject returns c.Object.
func (c *Change[T]) GetObject() T { return c.Object }

// Latest returns a copy of the newest known state, without unwritten patches. If the object is deleted, it returns the
// last known state, and the context ends with [ErrDeleted]. If the object no longer decodes into T, the handler fails.
func (c *Change[T]) Latest() T {
	c.needCall()
	newest := c.newest()
	object, err := c.codec.DecodeFrom(newest, newest.Value)
	if err != nil {
		c.do(func() error { return err })
	}
	return object
}

// newest returns the newest known state in its stored form.
func (c *Change[T]) newest() *jsontext.Object {
	var newest *jsontext.Object
	switch {
	case c.returned.Load(): // who asks has outlived the handler, and the engine has gone on
	case c.call.Live != nil:
		newest = c.call.Live.Object()
	case c.call.Newest != nil:
		known := unstructured.Unstructured{Object: c.call.Cause.Body()}
		newest = jsontext.Of(c.call.Newest.Latest(client.ObjectKeyFromObject(&known), known.GetUID()))
	}
	if newest == nil { // gone, as it was when the call began
		newest = c.call.Cause.Object
	}
	return newest
}

// latest returns the newest known state in its raw form. It is shared.
func (c *Change[T]) latest() map[string]any {
	body, err := c.newest().Value()
	if err != nil {
		panic(err) // as when a function looks at a cause that cannot be decoded
	}
	return body
}

// Resource returns the kind of the object with group, version, plural and scope; in [WhenChange], only the kind. Kopf:
// resource.
func (c *Change[T]) Resource() Resource {
	c.needCall()
	if c.call.Resource == nil {
		known := unstructured.Unstructured{Object: c.call.Cause.Body()}
		return Resource{GroupVersionKind: known.GroupVersionKind()}
	}
	return resourceOf(*c.call.Resource)
}
