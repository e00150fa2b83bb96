package kopf

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
)

// Patch changes c.Object immediately, and the object in the cluster with the next write or [Change.Flush], even if the
// handler fails. Kopf: patch, patch.fns.
//
//	c.Patch(func(db *v1.Database) { db.Status.Phase = "Ready" })
//
// # Guarantees
//
// Only fields that the function changes are written. Fields that T does not have stay; for lists, see docs/objects.md.
// After a conflict, the function runs again on the fresh object. System metadata and the operator's finalizer cannot be
// changed.
//
// The function runs at least twice. It must be idempotent, without other effects, and call neither methods of c nor
// [Result].
//
// # Errors
//
// A panic, or an invalid object afterwards, fails the handler when it returns. A status that the API server rejects is
// logged, and the rest is written.
func (c *Change[T]) Patch(change func(object T)) {
	c.runLocked(func() error {
		if c.call.Writer == nil {
			return errReadOnly
		}
		err := c.rememberPatch(c.codec.Transform(change, c.listRules()))
		// The Object of a background function stays as it is.
		if err == nil && c.call.LiveObject == nil {
			// Show the change in the handler's object, too, which was decoded before. Take it out of the search for
			// changes without Patch.
			c.original.DetectChanges()
			err = codec.Call(func() error { change(c.Object); return nil })
			c.original.RecordContent()
		}
		return c.patchError(err)
	})
}

// TryPatch is [Change.Patch] with a function that can fail, such as by [SetField]. The error discards the changes of
// the function and fails the handler when it returns, [Permanent] ones permanently. A failure after a conflict discards
// all unwritten patches.
func (c *Change[T]) TryPatch(change func(object T) error) {
	c.runLocked(func() error {
		if c.call.Writer == nil {
			return errReadOnly
		}
		if c.call.LiveObject != nil {
			return c.patchError(c.rememberPatch(c.codec.TryTransform(change, c.listRules())))
		}
		c.original.DetectChanges()
		// The function changes a copy, so that c.Object is unchanged if it fails.
		var tried T
		err := codec.Call(func() error { tried = c.codec.Copy(c.Object); return change(tried) })
		if err == nil {
			err = c.rememberPatch(c.codec.TryTransform(change, c.listRules()))
		}
		if err == nil {
			c.codec.ReplaceContent(c.Object, tried)
			c.original.RecordContent()
		}
		return c.patchError(err)
	})
}

// rememberPatch keeps a change of the object for the next write. The change cannot remove the operator's finalizer,
// which holds the object for delete handlers.
func (c *Change[T]) rememberPatch(change patching.Transform) error {
	return c.call.Writer.AddTransform(patching.GuardFinalizers(c.cluster.finalizer, change))
}

// patchError adds the object and the handler to an error.
func (c *Change[T]) patchError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("patching object %s by handler %q: %w", c.objectName(), c.ID, err)
}

// SetResult sets the value for status.<id>, written if the handler succeeds; nil means none. An object is merged into
// the existing value. The CRD schema must allow the field, or the API server drops it silently. A value that does not
// encode to JSON fails the handler permanently. Kopf: the function's return value.
func (c *Change[T]) SetResult(value any) {
	c.runLocked(func() error {
		if c.call.Writer == nil {
			return errReadOnly
		}
		// Encode the value now, because the handler may change it before the write.
		result, err := codec.EncodeValue(value)
		if err != nil {
			return Permanent(fmt.Errorf(
				"result of handler %q is not a JSON value: %w; give SetResult what encodes to JSON", c.ID, err,
			))
		}
		if err := c.call.Writer.SetResult(result); err != nil {
			return fmt.Errorf("setting the result of handler %q: %w", c.ID, err)
		}
		return nil
	})
}

// Flush writes the patches so far and the progress of earlier handlers, without the result, and waits for the API
// server.
func (c *Change[T]) Flush(ctx context.Context) error {
	switch {
	case c.hasNoCall():
		return errWithoutOperator
	case c.call.Writer == nil:
		return errReadOnly
	}
	if err := c.call.Writer.Flush(ctx); err != nil {
		return fmt.Errorf("flushing object %s by handler %q: %w", c.objectName(), c.ID, err)
	}
	return nil
}

// updateFunc calls update, which replaces an object, or only its status.
type updateFunc func(object client.Object, status bool, update func() error) error

// handlerClient is the client in one call of a handler. It passes updates of objects to a function, which warns of
// erased fields. It embeds the client because later versions of controller-runtime may add methods.
type handlerClient struct {
	client.Client

	update updateFunc
}

// Update replaces the object.
func (c handlerClient) Update(ctx context.Context, object client.Object, opts ...client.UpdateOption) error {
	return c.update(object, false, func() error { return c.Client.Update(ctx, object, opts...) })
}

// Status writes the status.
func (c handlerClient) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource writes the subresource.
func (c handlerClient) SubResource(name string) client.SubResourceClient {
	next := c.Client.SubResource(name)
	if name != "status" {
		return next
	}
	return handlerStatus{SubResourceClient: next, update: c.update}
}

// handlerStatus is the same for the status subresource.
type handlerStatus struct {
	client.SubResourceClient

	update updateFunc
}

// Update replaces the status.
func (c handlerStatus) Update(
	ctx context.Context, object client.Object, opts ...client.SubResourceUpdateOption,
) error {
	return c.update(object, true, func() error { return c.SubResourceClient.Update(ctx, object, opts...) })
}

// checkedClient returns a client that checks updates of the handled object. Filters get the client itself.
func (c *Change[T]) checkedClient(cluster clientSet) client.Client {
	next := cluster.client
	if c.mistakes == nil || next == nil {
		return next
	}
	if parent, ok := next.(handlerClient); ok { // a sub-handler got the client of its handler
		next = parent.Client
	}
	return handlerClient{Client: next, update: func(object client.Object, status bool, update func() error) error {
		// The warning is logged once for the handler, so later updates are not checked.
		if c.mistakes.erasedFields.Load() {
			return update()
		}
		// Only the handled object is known well enough to compare.
		kind, err := next.GroupVersionKindFor(object)
		if err != nil || c.call.Resource == nil || kind != c.call.Resource.GroupVersionKind {
			return update()
		}
		return c.noteErasedFields(object, status, update)
	}}
}

// noteErasedFields makes an update, and logs once for the handler if it erased fields of the handled object. An update
// without an effect, such as a dry run, does not change the resource version.
func (c *Change[T]) noteErasedFields(object client.Object, status bool, update func() error) error {
	version, fields := object.GetResourceVersion(), c.erasedFields(object, status)
	err := update()
	if err != nil || len(fields) == 0 || object.GetResourceVersion() == version ||
		!c.mistakes.erasedFields.CompareAndSwap(false, true) {
		return err
	}
	logging.Warn(c.log, "Update by the client erased fields of the object that its Go type does not have; logged once "+
		"for the handler", "fields", fields,
		"instead", fmt.Sprintf("Patch(func(object %T) { ... }), or a Go type with the fields", c.Object))
	return nil
}

// erasedFields returns the fields that an update erases. It needs the handled object in exactly the version that the
// update replaces, and returns nothing otherwise.
func (c *Change[T]) erasedFields(object client.Object, status bool) []string {
	for _, known := range []*jsontext.LazyObject{c.newestObject(), c.call.Cause.Object} {
		if known.StringAt("metadata", "uid") != string(object.GetUID()) ||
			known.StringAt("metadata", "resourceVersion") != object.GetResourceVersion() {
			continue
		}
		body, err := known.Value()
		if err != nil {
			return nil
		}
		// An update of the main resource ignores the status if it is a subresource, and an update of the status all
		// other fields.
		return codec.ErasedFields(body, object, func(key string) bool {
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

// listRules returns the rules for lists of the handled object.
func (c *Change[T]) listRules() codec.Lists {
	return c.cluster.keys.listRules(c.call.Resource, c.mistakes, c.log)
}
