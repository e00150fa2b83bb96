package kopf

import (
	"context"
	"errors"
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/children"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
)

var errEnsureInDeletion = errors.New("it was called by a handler of the deletion: children are deleted with the " +
	"object; leave Ensure out")

// Ensure makes these children of the handled object: those that are not there are created, those that differ are
// changed. What this handler declared before, and has not declared in this call of it, is deleted when it has returned
// without an error. With no children at all, all of them are. Kopf: none.
//
//	return c.Ensure(ctx, configMapFor(c.Object), deploymentFor(c.Object))
//
// Children are typed objects, unstructured ones, apply configurations of client-go, lists and slices of them. They have
// names of their own; those without a namespace get that of the object. They are copied, and stay as they are.
//
// # Flow
//
// Each child is applied by server-side apply, with the operator's name as the field manager, an owner reference, the
// object's labels beside its own, the label "<prefix>/parent-uid", and the annotation "<prefix>/declared-in". What is
// there already must be a child of the object: by an owner reference or by that label, whatever the annotations of the
// object say. Fields that are not declared are left to others: a typed object declares all its fields that have no
// omitempty, be they set or not. But the fields of former field managers, which have set that reference or that label
// or are in [ExecutionSettings].FormerManagers, are taken over when a process applies a child first: those that are not
// declared are removed. Where nothing differs, nothing is written. The annotation "<prefix>/children-of.<id>" records
// the declared children. It is written before a child is applied that is not in it, and with the outcome of the
// handler.
//
// The set belongs to the handler's id: handlers of several reasons with one id, see [Selection.On], declare one
// set, others have their own, and a child in several of them stays until the last one drops it. The set is what one
// call of the handler declares in all its calls of Ensure, so [WaitFor] may stand between two of them. As long as the
// handler waits or fails, nothing is deleted; nor if it does not call Ensure at all. What it declares no more is
// deleted after its sub-handlers are finished: they may have taken it over.
//
// An object can have about 10,000 children: the API server limits its annotations to 256 KiB.
//
// A child that the object cannot own, as it has no namespace or another one, is held by the label, and the object by
// the operator's finalizer: when the object is deleted, the operator deletes the child. Others are deleted by
// Kubernetes.
//
// # Errors
//
// If a child fails, the others are applied, nothing is deleted, and the error names each such child by its index among
// all children of the call, those in lists included, and by its name: one that is nil, or has no name or kind; one of a
// kind that the cluster does not have; an object of its name that is no child of this object, which is never touched;
// one that this call of the handler has declared otherwise before; and a field that another field manager declares by
// server-side apply with another value, with the name of that one. A declared field that was edited by other means is
// set back, with a line in the log.
//
// CustomResourceDefinitions and Namespaces are applied first. A child of a kind that the object's own definition is
// about to provide, or in its own namespace, is a temporary error of 5 seconds, whatever the Backoff.
//
// A call in a handler of the deletion fails permanently. So does one whose children do not fit into the annotation: it
// applies nothing. Nothing else does. If the handler returns nil all the same, nothing is deleted, and the log names
// the children that would have been. A deletion that fails is an error of the handler: it is called again.
func (c *Change[T]) Ensure(ctx context.Context, children ...any) error {
	switch {
	case c.byHand():
		return errByHand
	case c.call.Writes == nil:
		return errOnlyReading
	case c.Reason == ReasonDelete:
		return c.ensureError(Permanent(errEnsureInDeletion))
	}
	return c.ensure(ctx, c.call.Working, children)
}

// Ensure makes these children of the object, see [Change.Ensure]. The set is that of this daemon or timer, apart from
// that of a handler of changes with the same id. In a timer, it is what one tick declares, and is known when the tick
// has ended without an error. A daemon may call it again and again: each call declares the whole set.
func (r *Task[T]) Ensure(ctx context.Context, children ...any) error {
	c := r.change
	switch {
	case c.byHand():
		return errByHand
	case c.returned.Load():
		return c.ensureError(errReturned)
	case c.call.Handler.Background.Daemon:
		return c.ensureError(c.children.Ensure(ctx, c.parent(nil), c.declarer(nil), children))
	}
	return c.ensure(ctx, func() (map[string]any, error) { return nil, nil }, children)
}

func (c *Change[T]) ensure(ctx context.Context, working func() (map[string]any, error), given []any) error {
	declared, err := c.declaring(working)
	if err != nil {
		return c.ensureError(err)
	}
	return c.ensureError(declared.Ensure(ctx, given))
}

// declaring is what the call of the handler declares, while it has not returned.
func (c *Change[T]) declaring(working func() (map[string]any, error)) (*children.Declaration, error) {
	c.lock()
	defer c.mu.Unlock()
	if c.returned.Load() {
		return nil, errReturned
	}
	if c.declared == nil {
		own, err := working()
		if err != nil {
			return nil, err
		}
		c.declared = c.children.Begin(c.parent(own), c.declarer(own))
	}
	return c.declared, nil
}

func (c *Change[T]) parent(own map[string]any) children.Parent {
	return children.Parent{Newest: c.latest, Own: own, Writes: c.call.Writes}
}

func (c *Change[T]) declarer(own map[string]any) children.Handler {
	return children.Handler{ID: c.ID, Background: own == nil}
}

// prune deletes what the function declares no more. What a sub-handler declares now is no orphan, so they are finished
// before.
func (c *Change[T]) prune(ctx context.Context, declared *children.Declaration) error {
	if c.call.Subs != nil {
		if err := c.call.Subs.Run(ctx, nil); err != nil {
			return err
		}
	}
	return c.ensureError(declared.End(ctx))
}

func (c *Change[T]) ensureError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("ensuring the children of object %s by handler %q: %w", c.name(), c.ID, err)
}

// dependents are the children that objects cannot own. There are none before the operator has its clients.
func (op *Operator) dependents() changes.Dependents {
	if op.clients.children == nil {
		return nil
	}
	return op.clients.children
}
