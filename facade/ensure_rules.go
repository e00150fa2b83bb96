package kopf

import "github.com/kopf-runtime/kopf-runtime/facade/internal/children"

// Once returns children, one or a list, that [Change.Ensure] creates but never updates, such as generated passwords.
// Kopf: none.
//
//	return c.Ensure(ctx, kopf.Once(secret))
func Once(child any) any {
	return &children.Ruled{Given: child, Rules: children.Rules{Once: true}}
}

// UntilDone returns children, one or a list, that [Change.Ensure] applies until they are done, such as Jobs with
// ttlSecondsAfterFinished. The same declaration never runs again, even after a failure; a different one does. Kopf:
// none.
//
// A child is done if a condition Complete, Succeeded or Failed is true, or its phase is Succeeded or Failed. Without
// [Selection.Owns], a child that disappears counts as done.
func UntilDone(child any) any {
	return &children.Ruled{Given: child, Rules: children.Rules{UntilDone: true}}
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
		rules = rules.With(option.rules)
	}
	return &children.Ruled{Given: child, Rules: rules}
}

// AdoptFormer takes over children that a former object of the same kind, namespace and name left by [Retain].
func AdoptFormer() retainOption {
	return retainOption{children.Rules{AdoptFormer: true}}
}
