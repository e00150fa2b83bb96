package kopf

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/children"
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
	case c.hasNoCall():
		return errWithoutOperator
	case c.call.Writer == nil:
		return errReadOnly
	case c.Reason == ReasonDelete:
		return c.ensureError(Permanent(errEnsureInDeletion))
	}
	return c.addChildren(ctx, c.call.WorkingCopy, children)
}

// Ensure is [Change.Ensure]. The set belongs to this daemon or timer. It spans one tick of a timer, or one call of
// Ensure in a daemon.
func (r *Task[T]) Ensure(ctx context.Context, children ...any) error {
	c := r.change
	switch {
	case c.hasNoCall():
		return errWithoutOperator
	case c.hasReturned.Load():
		return c.ensureError(errReturned)
	// A daemon has no ticks that would end a set, so each call of Ensure declares the whole set.
	case c.call.Handler.Background.Daemon:
		return c.ensureError(c.cluster.children.Ensure(ctx, c.asParent(nil), c.asDeclarer(nil), children))
	}
	return c.addChildren(ctx, func() (map[string]any, error) { return nil, nil }, children)
}

// addChildren adds children to the declaration of the current call.
func (c *Change[T]) addChildren(ctx context.Context, working func() (map[string]any, error), given []any) error {
	declared, err := c.currentDeclaration(working)
	if err != nil {
		return c.ensureError(err)
	}
	return c.ensureError(declared.Ensure(ctx, given))
}

// currentDeclaration returns the declaration of the current call of the handler, and begins it at the first call of
// Ensure.
func (c *Change[T]) currentDeclaration(working func() (map[string]any, error)) (*children.Declaration, error) {
	c.lockCalls()
	defer c.mu.Unlock()
	if c.hasReturned.Load() {
		return nil, errReturned
	}
	if c.declared == nil {
		own, err := working()
		if err != nil {
			return nil, err
		}
		c.declared = c.cluster.children.NewDeclaration(c.asParent(own), c.asDeclarer(own))
	}
	return c.declared, nil
}

// asParent returns the handled object as the owner of children. The argument own is the working copy; nil stands for
// the newest state, in background functions.
func (c *Change[T]) asParent(own map[string]any) children.Parent {
	return children.Parent{NewestState: c.newestBody, CallState: own, Writes: c.call.Writer}
}

// asDeclarer returns the identity under which the set of children is stored.
func (c *Change[T]) asDeclarer(own map[string]any) children.DeclaringHandler {
	return children.DeclaringHandler{ID: c.ID, FormerIDs: c.call.Handler.FormerIDs, Background: own == nil}
}

// pruneChildren deletes children that the handler no longer declares. Sub-handlers run first, because they may declare
// some of these children. While sub-handlers are unfinished, their error ends this call, and nothing is deleted.
func (c *Change[T]) pruneChildren(ctx context.Context, declared *children.Declaration) error {
	if c.call.Subs != nil {
		if err := c.call.Subs.Run(ctx, nil); err != nil {
			return err
		}
	}
	return c.ensureError(declared.EndCall(ctx))
}

// ensureError adds the object and the handler to an error.
func (c *Change[T]) ensureError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("ensuring the children of object %s by handler %q: %w", c.objectName(), c.ID, err)
}

// Once returns children, one or a list, that [Change.Ensure] creates but never updates, such as generated passwords.
// Kopf: none.
//
//	return c.Ensure(ctx, kopf.Once(secret))
func Once(child any) any {
	return &children.RuledDeclaration{Object: child, Rules: children.Rules{Once: true}}
}

// UntilDone returns children, one or a list, that [Change.Ensure] applies until they are done, such as Jobs with
// ttlSecondsAfterFinished. The same declaration never runs again, even after a failure; a different one does. Kopf:
// none.
//
// A child is done if a condition Complete, Succeeded or Failed is true, or its phase is Succeeded or Failed. Without
// [Selection.Owns], a child that disappears counts as done.
func UntilDone(child any) any {
	return &children.RuledDeclaration{Object: child, Rules: children.Rules{UntilDone: true}}
}

// retainOption is an option of [Retain].
type retainOption struct{ rules children.Rules }

// Retain returns children, one or a list, that [Change.Ensure] applies and the operator never deletes, not even with
// the object. They have no owner reference. Kopf: none.
//
// If the object is created again, Ensure returns an error for its former children, except with [AdoptFormer].
func Retain(child any, options ...retainOption) any {
	rules := children.Rules{Retain: true}
	for _, option := range options {
		rules = rules.MergedWith(option.rules)
	}
	return &children.RuledDeclaration{Object: child, Rules: rules}
}

// AdoptFormer takes over children that a former object of the same kind, namespace and name left by [Retain].
func AdoptFormer() retainOption {
	return retainOption{children.Rules{AdoptFormer: true}}
}

// Adopt prepares objects, or lists of them, to be created as children: it adds an owner reference and the labels of the
// object, and sets a missing namespace and generateName. It does not write to the cluster. Kopf: adopt.
//
//	if err := c.Adopt(pod); err != nil {
//		return err
//	}
//	return c.Client.Create(ctx, pod)
//
// A repeated call creates another object if the name is generated. A child that the object cannot own, by its namespace
// or scope, is an error, and a warning under [AsKopf].
func (c *Change[T]) Adopt(children ...any) error {
	if c.hasNoCall() {
		return errWithoutOperator
	}
	owner := &unstructured.Unstructured{Object: c.newestBody()}
	if err := c.cluster.children.Adopt(owner, children, c.Client, c.log); err != nil {
		return fmt.Errorf("object %s: %w", c.objectName(), err)
	}
	return nil
}
