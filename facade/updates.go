package kopf

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

// updateFunc makes a request that replaces an object, or only its status.
type updateFunc func(object client.Object, status bool, update func() error) error

// handlerClient is the client of one call of a handler. It passes all updates of objects through a function. It embeds
// the client because later versions of controller-runtime may require more methods.
type handlerClient struct {
	client.Client

	through updateFunc
}

// Update replaces the object.
func (c handlerClient) Update(ctx context.Context, object client.Object, opts ...client.UpdateOption) error {
	return c.through(object, false, func() error { return c.Client.Update(ctx, object, opts...) })
}

// Status writes the status.
func (c handlerClient) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource writes the subresource.
func (c handlerClient) SubResource(name string) client.SubResourceClient {
	next := c.Client.SubResource(name)
	if name != "status" {
		return next
	}
	return handlerStatus{SubResourceClient: next, through: c.through}
}

// handlerStatus is the same for the status.
type handlerStatus struct {
	client.SubResourceClient

	through updateFunc
}

// Update replaces the status.
func (c handlerStatus) Update(
	ctx context.Context, object client.Object, opts ...client.SubResourceUpdateOption,
) error {
	return c.through(object, true, func() error { return c.SubResourceClient.Update(ctx, object, opts...) })
}

// clientOf returns the client with updates that are checked; for functions that are not handlers, the client itself.
func (c *Change[T]) clientOf(cluster clients) client.Client {
	next := cluster.client
	if c.mistakes == nil || next == nil {
		return next
	}
	if parent, ok := next.(handlerClient); ok { // of the handler that has declared this one
		next = parent.Client
	}
	return handlerClient{Client: next, through: func(object client.Object, status bool, update func() error) error {
		if c.mistakes.erased.Load() {
			return update()
		}
		kind, err := next.GroupVersionKindFor(object)
		if err != nil || c.call.Resource == nil || kind != c.call.Resource.GroupVersionKind {
			return update()
		}
		return c.noteErased(object, status, update)
	}}
}

// noteErased logs once for the handler that an update has erased fields of the handled object. An update that changes
// nothing, such as a dry run, leaves the resource version as it was.
func (c *Change[T]) noteErased(object client.Object, status bool, update func() error) error {
	version, fields := object.GetResourceVersion(), c.erased(object, status)
	err := update()
	if err != nil || len(fields) == 0 || object.GetResourceVersion() == version ||
		!c.mistakes.erased.CompareAndSwap(false, true) {
		return err
	}
	logging.Warn(c.log, "Update by the client erased fields of the object that its Go type does not have; logged once "+
		"for the handler", "fields", fields,
		"instead", fmt.Sprintf("Patch(func(object %T) { ... }), or a Go type with the fields", c.Object))
	return nil
}

// erased returns the fields that an update erases, as far as the handled object is known in the version of the update.
func (c *Change[T]) erased(object client.Object, status bool) []string {
	for _, known := range []*jsontext.Object{c.newest(), c.call.Cause.Object} {
		if known.String("metadata", "uid") != string(object.GetUID()) ||
			known.String("metadata", "resourceVersion") != object.GetResourceVersion() {
			continue
		}
		body, err := known.Value()
		if err != nil {
			return nil
		}
		return codec.Erased(body, object, func(key string) bool {
			switch key {
			case "apiVersion", "kind", "metadata":
				return false
			case "status":
				return status || !c.call.Resource.HasStatus()
			default:
				return !status
			}
		})
	}
	return nil
}
