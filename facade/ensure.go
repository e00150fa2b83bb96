package facade

import (
	"context"
	"errors"
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/children"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
)

var (
	errEnsuredTwice = errors.New("it was called already in this call of the handler: each call declares all children " +
		"of the handler; give them in one call, or have a sub-handler declare those that come later")
	errEnsureInDeletion = errors.New("it was called by a handler of the deletion: children are deleted with the " +
		"object; leave Ensure out")
)

// Ensure makes these the children of the handled object: those that are not there are created, those that differ are
// changed, and what this handler declared before, and does not declare any more, is deleted. With no children, all of
// them are. Kopf: none.
//
//	return c.Ensure(ctx, configMapFor(c.Object), deploymentFor(c.Object))
//
// Children are typed objects, unstructured ones, apply configurations of client-go, lists and slices of them. They have
// names of their own; those without a namespace get that of the object. They are copied, and stay as they are.
//
// # Flow
//
// Each child is applied by server-side apply, with the operator's name as the field manager, an owner reference, the
// object's labels beside its own, and the label "<prefix>/parent-uid". Fields that are not declared are left to
// others: a typed object declares all its fields that have no omitempty, be they set or not. Where nothing differs,
// nothing is written. What is declared is remembered in the annotation "<prefix>/children-of.<id>": before a child is
// applied that is not in it, and with the outcome of the handler.
//
// The set belongs to the handler's id: handlers of several reasons with one id, see [ChangeSelection.On], declare one
// set, others have their own, and a child in several of them stays until the last one drops it. One call of a handler
// declares the whole set, so it calls Ensure once; a daemon or a timer calls it again whenever the set may have
// changed.
//
// A child that the object cannot own, as it has no namespace or another one, is held by the label, and the object by
// the operator's finalizer: when the object is deleted, the operator deletes the child. Others are deleted by
// Kubernetes.
//
// # Errors
//
// If a child fails, the others are applied, none is deleted, and the error names it by its index and its name: one that
// is nil, or has no name or kind; an object of its name that is no child of this object, which is never touched; and a
// field that another field manager declares by server-side apply with another value, with the name of that one. A field
// that somebody has edited otherwise is set back, with a line in the log. A second call, and one in a handler of the
// deletion, fail for good; so does nothing else.
func (c *Change[T]) Ensure(ctx context.Context, children ...any) error {
	switch {
	case c.byHand():
		return errByHand
	case c.call.Writes == nil:
		return errOnlyReading
	case c.Reason == ReasonDelete:
		return c.ensureError(Permanent(errEnsureInDeletion))
	case c.declared.Swap(true):
		return c.ensureError(Permanent(errEnsuredTwice))
	}
	return c.ensure(ctx, c.call.Object, children)
}

// Ensure makes these the children of the object, see [Change.Ensure]. It may be called again and again: each call
// declares the whole set. The set is that of this daemon or timer, apart from that of a handler of changes with the
// same id.
func (r *Run[T]) Ensure(ctx context.Context, children ...any) error {
	if r.change.byHand() {
		return errByHand
	}
	return r.change.ensure(ctx, nil, children)
}

func (c *Change[T]) ensure(ctx context.Context, own map[string]any, given []any) error {
	if c.returned.Load() {
		return c.ensureError(errReturned)
	}
	parent := children.Parent{Newest: c.latest, Own: own, Writes: c.call.Writes}
	handler := children.Handler{ID: c.ID, Background: own == nil}
	return c.ensureError(c.children.Ensure(ctx, parent, handler, given))
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
