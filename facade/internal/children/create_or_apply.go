package children

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// childResult is the outcome of one child in a pass.
type childResult struct {
	object        *unstructured.Unstructured // nil if the child is done
	formerRecords string                     // the record names that the object had before, if it was read
	run           childRun
}

// recordEntry returns the entry of the child for the record. A child with Once has no uid, because it was created and
// not applied. If another rule applies it later, it is read first, and the fields of its creation are taken over.
func (r childResult) recordEntry(child declaredChild) childEntry {
	known := childEntry{version: child.object.GroupVersionKind().Version, isRetained: child.rules.Retain, run: r.run}
	if r.object != nil && !child.rules.Once {
		known.uid = r.object.GetUID()
	}
	return known
}

// applyByRules brings one child into its declared state by its rules. Seen is its last application by this process; nil
// if there is none.
func (p *pass) applyByRules(ctx context.Context, child declaredChild, seen *appliedChild) (childResult, error) {
	if child.rules.UntilDone {
		return p.makeUntilDone(ctx, child, seen)
	}
	made, former, err := p.keeper.createOrApply(ctx, p.parent.NewestState(), child, p.knownChildren[child.identity].uid)
	return childResult{object: made, formerRecords: former}, err
}

// createOrApply creates or applies the child, see [Keeper.applyChild].
func (k *Keeper) createOrApply(
	ctx context.Context, parent map[string]any, child declaredChild, uid types.UID,
) (made *unstructured.Unstructured, former string, err error) {
	if child.rules.Once {
		return k.createOnce(ctx, parent, child)
	}
	return k.applyChild(ctx, parent, child, uid)
}

// createOnce creates the child if it is absent, and returns the existing object otherwise. It never overwrites an
// existing object. A create request, unlike an apply, fails if another process creates the object at the same time.
func (k *Keeper) createOnce(
	ctx context.Context, parent map[string]any, child declaredChild,
) (made *unstructured.Unstructured, former string, err error) {
	for attempt := 1; ; attempt++ {
		// The name is checked first, because most calls find the child and need no other request.
		held, err := k.getMetadata(ctx, child.identity, child.object.GroupVersionKind().Version)
		switch {
		case err == nil:
			return k.keepExisting(ctx, parent, child, held)
		case !apierrors.IsNotFound(err):
			return nil, "", fmt.Errorf("looking for it: %w", err)
		}
		made = child.object.DeepCopy()
		switch err := k.Client.Create(ctx, made); {
		// The next attempt reads the object that was created between our two requests.
		case apierrors.IsAlreadyExists(err) && attempt < maxAttempts:
		case err != nil:
			return nil, "", fmt.Errorf("creating it: %w", err)
		default:
			return made, "", nil
		}
	}
}

// keepExisting returns the existing object unchanged, or an error if it is not a child of the parent. A child of a
// former parent gets the label of this one.
func (k *Keeper) keepExisting(
	ctx context.Context, parent map[string]any, child declaredChild, held *metav1.PartialObjectMetadata,
) (made *unstructured.Unstructured, former string, err error) {
	switch {
	case !k.isAdoptable(parent, child, held):
		return nil, "", k.strangerError(parent, held)
	case held.DeletionTimestamp != nil:
		return nil, "", &waitError{errTerminating}
	// The label makes the child provable for the next passes.
	case !k.isChildOf(parent, held):
		// The optimistic lock rejects the patch if another client adopts or changes the object at the same time.
		before := held.DeepCopy()
		held.Labels[k.ParentLabel()] = string(uidOf(parent))
		guarded := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := k.Client.Patch(ctx, held, guarded); err != nil {
			return nil, "", fmt.Errorf("adopting it: %w", err)
		}
	default:
		k.noteRead(held) // nothing was written, so this version is not an own write
	}
	// Only the metadata was read, so the declaration stands in for the content. Its uid and version are those of the
	// server.
	made = child.object.DeepCopy()
	made.SetUID(held.UID)
	made.SetResourceVersion(held.ResourceVersion)
	return made, k.recordNames(held), nil
}

// makeUntilDone applies a child with UntilDone unless it is done. The record of a child has the digest of its last
// declaration and the outcome. There are four cases:
//
//   - The declaration is done: nothing is applied, even if the object is absent.
//   - The same declaration was applied and the object is absent: unless its deletion was observed, it counts as done.
//   - Another declaration was applied and is done: the object is replaced.
//   - In all other cases, the child is applied. If its immutable fields prevent that and the object is done, it is
//     replaced.
func (p *pass) makeUntilDone(ctx context.Context, child declaredChild, seen *appliedChild) (childResult, error) {
	// With Once, the first declaration counts; later ones do not run the child again.
	before, now := p.knownChildren[child.identity].run, childRun{digest: child.digest}
	same := before.digest == now.digest || child.rules.Once && before.digest != ""
	if same {
		now = before.mergeLater(seen.runOf(before.digest))
	}
	// The stored outcome is final, even if the child was deleted since.
	if now.outcome != "" {
		return childResult{run: now}, nil
	}
	// The status is needed, so the whole object is read and not only its metadata.
	held, err := p.keeper.getObject(ctx, child)
	switch {
	case err != nil:
		return childResult{}, err
	// The child was applied and is absent. Without an observed deletion, it may have been removed after it was done,
	// for example by ttlSecondsAfterFinished. Another run could repeat its effects.
	case held == nil && same && !seen.isDeleted():
		logf.FromContext(ctx).Info("Counting a child as done, as it is gone and its end was not seen",
			"child", child.String())
		now.outcome = outcomeVanished
		return childResult{run: now}, nil
	// The former declaration is done, so its object cannot be updated to run the new one.
	case held != nil && !same && before.digest != "" && outcomeOf(held.Object) != "":
		return p.replaceDone(ctx, child, held, now)
	}
	made, former, err := p.keeper.createOrApply(ctx, p.parent.NewestState(), child, p.knownChildren[child.identity].uid)
	// The record of the former declaration can be lost. Then only the refused apply shows that the object differs.
	if fixed := (*immutableFieldError)(nil); errors.As(err, &fixed) && held != nil && outcomeOf(held.Object) != "" {
		return p.replaceDone(ctx, child, held, now)
	}
	if err != nil {
		return childResult{}, err
	}
	// The result of a create request has no status, so the outcome is read from the existing object.
	if child.rules.Once && held != nil {
		made = held
	}
	now.outcome = outcomeOf(made.Object)
	return childResult{made, former, now}, nil
}

// replaceDone deletes a child that is done, and applies the new declaration.
func (p *pass) replaceDone(
	ctx context.Context, child declaredChild, held *unstructured.Unstructured, now childRun,
) (childResult, error) {
	parent, metadata := p.parent.NewestState(), metadataOf(held)
	switch {
	case !p.keeper.isProven(parent, metadata, p.knownChildren[child.identity].uid):
		return childResult{}, p.keeper.strangerError(parent, metadata)
	// A retained child must not be lost, not even for its successor.
	case p.keeper.retainedBy(metadata) != "":
		return childResult{}, errRetainUntilDone
	}
	if err := p.keeper.deleteObject(ctx, metadata); err != nil {
		return childResult{}, fmt.Errorf("deleting it, as it is done and declared otherwise now: %w", err)
	}
	// The empty uid makes [Keeper.applyChild] check the object that has the name now. If finalizers delay the deletion,
	// that is a temporary error.
	made, former, err := p.keeper.createOrApply(ctx, parent, child, "")
	if err != nil {
		return childResult{}, err
	}
	logf.FromContext(ctx).Info("Replaced a child that was done by its new declaration", "child", child.String())
	return childResult{made, former, now}, nil
}

// getObject reads the existing object with its status; nil if it does not exist.
func (k *Keeper) getObject(ctx context.Context, child declaredChild) (*unstructured.Unstructured, error) {
	held := &unstructured.Unstructured{}
	held.SetGroupVersionKind(child.object.GroupVersionKind())
	if err := k.APIReader.Get(ctx, child.namespacedName(), held); apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // absence is an answer
	} else if err != nil {
		return nil, fmt.Errorf("looking for it: %w", err)
	}
	return held, nil
}

// metadataOf returns the metadata that the checks and the deletion need.
func metadataOf(held *unstructured.Unstructured) *metav1.PartialObjectMetadata {
	metadata := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: held.GetNamespace(), Name: held.GetName(), UID: held.GetUID(), Labels: held.GetLabels(),
		Annotations: held.GetAnnotations(), OwnerReferences: held.GetOwnerReferences(),
		DeletionTimestamp: held.GetDeletionTimestamp(),
	}}
	metadata.SetGroupVersionKind(held.GroupVersionKind())
	return metadata
}
