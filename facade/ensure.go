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

// Ensure creates or updates children of the object, and deletes those that this handler no longer declares. Without
// children, it deletes all of them. Kopf: none.
//
//	return c.Ensure(ctx, configMapFor(c.Object), deploymentFor(c.Object))
//
// Children are named objects, apply configurations, and lists or slices of them. The default namespace is that of the
// object.
//
// # Flow
//
// Ensure uses server-side apply, with the operator's name as the field manager, and adds an owner reference, the
// object's labels and the label "<prefix>/parent-uid". Undeclared fields stay, except those of former field managers.
// If an owner reference is impossible, the operator deletes the child with the object.
//
// The set belongs to the handler id and spans all calls of Ensure in one call of the handler. Deletions follow when the
// handler and its sub-handlers have succeeded. The limit is about 10,000 children. See docs/children.md.
//
// # Errors
//
// If a child fails, the others are applied, nothing is deleted, and the error names the child. Objects that are not
// children of this object are never touched. Conflicts with other managers' server-side apply are errors. In a delete
// handler, Ensure fails permanently.
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

// Ensure is [Change.Ensure]. The set belongs to this daemon or timer. It spans one tick of a timer, or one call of
// Ensure in a daemon.
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

// declaring returns the declaration of the current call of the handler.
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
	return children.Handler{ID: c.ID, FormerIDs: c.call.Handler.FormerIDs, Background: own == nil}
}

// prune deletes children that the function no longer declares. Sub-handlers finish first: they may declare these
// children.
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

// dependents returns the children that objects cannot own. It returns nil before the operator has its clients.
func (op *Operator) dependents() changes.Dependents {
	if op.clients.children == nil {
		return nil
	}
	return op.clients.children
}
