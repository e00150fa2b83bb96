package kopf

import (
	"context"
	"errors"
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

var errOnlyReading = errors.New("a filter can neither change the object nor post events: leave that to a handler")

// Patch changes the object: at once in c.Object and in what later handlers of the change get, and in the cluster with
// the framework's own next write, whether the handler succeeds or not; see Flush.
//
// # Guarantees
//
// Only what the function changes is written. Fields that T does not have survive, as do changes by others: after a
// conflict the function runs again on the fresh object. Name, uid, resource version and the like stay as they are; so
// does the operator's own finalizer, as other handlers may need it. A finalizer is never added twice.
//
// In lists, such fields stay with their items, and a new item gets none. Items are recognised by the patchMergeKey of
// the Go field, by the x-kubernetes-list-map-keys of the schema, or by a name, key, id, type or port that all of them
// have and that is unique. Without any of these, a changed item is recognised by its place, as long as no items are
// added, removed or shifted; otherwise it loses the fields, which is logged once for the handler.
//
// # Assumptions
//
// The function is idempotent, has no other effect, and uses neither methods of c nor [Result]: it would wait for
// itself, so it fails. It runs twice at least. Kopf: patch, patch.fns.
//
// # Errors
//
// A panic of the function, and an object that is no valid one afterwards, fail the handler when it has returned. A
// status that the API server refuses where it has a URL of its own is a line in the log: the rest is written without
// it.
func (c *Change[T]) Patch(change func(object T)) {
	c.do(func() error {
		if c.call.Writes == nil {
			return errOnlyReading
		}
		err := c.remember(c.codec.Transform(change, c.lists()))
		if err == nil {
			// The handler's own object was decoded before; it is to show the change as well.
			c.original.Look()
			err = codec.Call(func() error { change(c.Object); return nil })
			c.original.Take()
		}
		return c.patchError(err)
	})
}

// TryPatch is [Change.Patch] with a function that may fail, such as by [SetField]. If it does, the handler has failed when
// it returns, with this error and its own: a [Permanent] one is permanent. Nothing of the function is written then, and
// c.Object is as it was; what was patched before stays patched.
//
// After a conflict, the function runs again, on the fresh object. If it fails there, the handler has failed likewise,
// even if it had returned nil; and nothing that it has patched since the last Flush is written. Of a function that has
// ended in the background it is a line in the log; so it is of a handler of raw events, and its other patches are
// written.
func (c *Change[T]) TryPatch(change func(object T) error) {
	c.do(func() error {
		if c.call.Writes == nil {
			return errOnlyReading
		}
		c.original.Look()
		// What the function has changed before it fails must not show: so it gets a copy of the handler's object.
		var tried T
		err := codec.Call(func() error { tried = c.codec.Copy(c.Object); return change(tried) })
		if err == nil {
			err = c.remember(c.codec.TryTransform(change, c.lists()))
		}
		if err == nil {
			c.codec.Replace(c.Object, tried)
			c.original.Take()
		}
		return c.patchError(err)
	})
}

// remember keeps a change of the object for the next write.
func (c *Change[T]) remember(change patching.Transform) error {
	return c.call.Writes.Remember(patching.GuardFinalizers(c.finalizer, change))
}

func (c *Change[T]) patchError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("patching object %s by handler %q: %w", c.name(), c.ID, err)
}

// containPanic makes a panic an error where it would end the process otherwise.
func containPanic(call func()) error {
	return panics.Contain(func() error { call(); return nil })
}

// SetResult sets what is written to status.<id> if the handler succeeds: any value that encodes to JSON; nil is no
// result. The last call counts. An object is merged over what is there, other values replace it. A CRD with a schema
// must allow the field, or else the API server drops it silently. A value that is not JSON fails the handler for good.
// Kopf: the function's return value.
func (c *Change[T]) SetResult(value any) {
	c.do(func() error {
		if c.call.Writes == nil {
			return errOnlyReading
		}
		// The value is encoded here and now: later, the handler may have changed it.
		result, err := codec.EncodeValue(value)
		if err != nil {
			return Permanent(fmt.Errorf(
				"result of handler %q is not a JSON value: %w; give SetResult what encodes to JSON", c.ID, err,
			))
		}
		if err := c.call.Writes.SetResult(result); err != nil {
			return fmt.Errorf("setting the result of handler %q: %w", c.ID, err)
		}
		return nil
	})
}

// Flush writes now what was patched so far, together with the progress of earlier handlers, and returns when the API
// server has it. It does not make the handler succeed, and does not write its result.
func (c *Change[T]) Flush(ctx context.Context) error {
	switch {
	case c.byHand():
		return errByHand
	case c.call.Writes == nil:
		return errOnlyReading
	}
	if err := c.call.Writes.Flush(ctx); err != nil {
		return fmt.Errorf("flushing object %s by handler %q: %w", c.name(), c.ID, err)
	}
	return nil
}
