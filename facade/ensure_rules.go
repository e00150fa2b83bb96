package kopf

import "github.com/kopf-runtime/kopf-runtime/facade/internal/children"

// Once returns a child, or a list of children, that [Change.Ensure] creates if it is absent, and does not change
// afterwards: for generated values, such as a password. Kopf: none.
//
//	secret := &corev1.Secret{Data: map[string][]byte{"password": []byte(rand.Text())}}
//	secret.Name = c.Object.Name + "-login"
//	return c.Ensure(ctx, kopf.Once(secret))
//
// The child is owned by the object, and is deleted when the handler does not declare it any more. If it is deleted
// otherwise, it is created again, as it is declared then. With [Owns] for its kind, this happens at once; edits are not
// set back. An object of its name that is not a child of this object is an error, as for other children.
func Once(child any) any {
	return &children.Ruled{Given: child, Rules: children.Rules{Once: true}}
}

// UntilDone returns a child, or a list of children, that [Change.Ensure] applies until it is done: for a Job that
// ttlSecondsAfterFinished removes, which would otherwise run again. Kopf: none.
//
//	return c.Ensure(ctx, kopf.UntilDone(backupJobFor(c.Object)))
//
// A child is done if one of its conditions Complete, Succeeded or Failed is true, if Succeeded is false, or if its
// phase is Succeeded or Failed. A Job is also done if as many Pods have succeeded as spec.completions says. The record
// of the handler on the object then remembers the outcome, with a digest of the declaration, and this declaration is
// not applied again, also after a failure. Another declaration runs again: it replaces the child if that is done, and
// changes it otherwise. Empty fields do not count.
//
// The operator sees that a child is done when the handler calls Ensure, or at once with [Owns] for its kind. A child
// that is gone counts as done if its end was not seen: while the operator did not run, or without Owns. With Owns, a
// child that is deleted before it is done is made again. [WaitFor] a child that is done and gone ends at once: with a
// permanent error if the child has failed.
//
// With [Once], the child is made once, whatever is declared later.
func UntilDone(child any) any {
	return &children.Ruled{Given: child, Rules: children.Rules{UntilDone: true}}
}

// retainOption is an option of [Retain].
type retainOption struct{ rules children.Rules }

// Retain returns a child, or a list of children, that [Change.Ensure] applies and that the operator never deletes: it
// stays when the object is deleted, and when the handler does not declare it any more. Kopf: none.
//
//	return c.Ensure(ctx, kopf.Retain(volumeClaimFor(c.Object)))
//
// The child has no owner reference. It has the label "<prefix>/parent-uid", and the annotation "<prefix>/retained-by"
// with the kind, namespace and name of the object. It does not hold the object by the finalizer. If the object is
// deleted and created again, its retained children are not its own, and Ensure returns an error for them, unless
// [AdoptFormer] takes them over.
func Retain(child any, options ...retainOption) any {
	rules := children.Rules{Retain: true}
	for _, option := range options {
		rules = rules.With(option.rules)
	}
	return &children.Ruled{Given: child, Rules: rules}
}

// AdoptFormer takes over a child that an object of the same kind, namespace and name has left behind, by [Retain] in
// this operator. Other objects are not touched.
func AdoptFormer() retainOption {
	return retainOption{children.Rules{AdoptFormer: true}}
}
