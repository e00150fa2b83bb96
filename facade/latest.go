package kopf

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

// GetObject returns c.Object, for functions that take a [Call].
func (c *Change[T]) GetObject() T { return c.Object }

// Latest is the newest state of the object that is known by now, as a copy: what the cache has, or what the framework
// has written since, such as by Flush. For a handler that runs long. What this handler has patched, and what no other
// write has taken along yet, is not in it; nor does it change c.Object.
//
// Of an object that is gone, it is the last state that was known; the handler's context ends with [ErrDeleted] then,
// which is noticed by this very call. For a filter, it is the object that it is asked about. If the object does not
// decode into its type any more, the handler fails, and what could be decoded is given.
func (c *Change[T]) Latest() T {
	c.needCall()
	newest := c.newest()
	object, err := c.codec.DecodeFrom(newest, newest.Value)
	if err != nil {
		c.do(func() error { return err })
	}
	return object
}

// newest is the newest state as it is kept.
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

// latest is the newest state in its raw form. It is shared.
func (c *Change[T]) latest() map[string]any {
	body, err := c.newest().Value()
	if err != nil {
		panic(err) // as when a function looks at a cause that cannot be decoded
	}
	return body
}

// Resource is what the object is one of: its kind with group and version, its plural, whether it is namespaced. The
// lists in it are copies. In a filter, it is the kind alone. Kopf: resource.
func (c *Change[T]) Resource() Resource {
	c.needCall()
	if c.call.Resource == nil {
		known := unstructured.Unstructured{Object: c.call.Cause.Body()}
		return Resource{GroupVersionKind: known.GroupVersionKind()}
	}
	return resourceOf(*c.call.Resource)
}
