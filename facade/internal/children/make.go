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

// result is what became of a child.
type result struct {
	object *unstructured.Unstructured // nil if the child is done
	former string                     // the records that the object named before, as far as it was read
	run    run
}

// entry returns the record of the child. One that is made once has no uid: it was created, not applied, so if another
// rule applies it later, it is read first, and the fields of its creation are taken over.
func (r result) entry(child declared) entry {
	known := entry{version: child.object.GroupVersionKind().Version, retained: child.rules.Retain, run: r.run}
	if r.object != nil && !child.rules.Once {
		known.uid = r.object.GetUID()
	}
	return known
}

// make makes the child by its rules. Seen is how this process knows it; nil if it does not.
func (p *pass) make(ctx context.Context, child declared, seen *application) (result, error) {
	if child.rules.UntilDone {
		return p.makeUntilDone(ctx, child, seen)
	}
	made, former, err := p.keeper.make(ctx, p.parent.Newest(), child, p.known[child.identity].uid)
	return result{object: made, former: former}, err
}

// make creates or applies the child, see apply.
func (k *Keeper) make(
	ctx context.Context, parent map[string]any, child declared, uid types.UID,
) (made *unstructured.Unstructured, former string, err error) {
	if child.rules.Once {
		return k.create(ctx, parent, child)
	}
	return k.apply(ctx, parent, child, uid)
}

// create creates the child if it is absent, and returns the present object. It never writes an existing object, even if
// another process creates it meanwhile: an apply would overwrite that.
func (k *Keeper) create(
	ctx context.Context, parent map[string]any, child declared,
) (made *unstructured.Unstructured, former string, err error) {
	for attempt := 1; ; attempt++ {
		held, err := k.get(ctx, child.identity, child.object.GroupVersionKind().Version)
		switch {
		case err == nil:
			return k.leave(ctx, parent, child, held)
		case !apierrors.IsNotFound(err):
			return nil, "", fmt.Errorf("looking for it: %w", err)
		}
		made = child.object.DeepCopy()
		switch err := k.Client.Create(ctx, made); {
		case apierrors.IsAlreadyExists(err) && attempt < tries:
		case err != nil:
			return nil, "", fmt.Errorf("creating it: %w", err)
		default:
			return made, "", nil
		}
	}
}

// leave returns the object that is there, unless it is none of the parent. One of a former parent gets the label of
// this one.
func (k *Keeper) leave(
	ctx context.Context, parent map[string]any, child declared, held *metav1.PartialObjectMetadata,
) (made *unstructured.Unstructured, former string, err error) {
	switch {
	case !k.isAdoptable(parent, child, held):
		return nil, "", k.strangerError(parent, held)
	case held.DeletionTimestamp != nil:
		return nil, "", &waitError{errTerminating}
	case !k.isOf(parent, held):
		before := held.DeepCopy()
		held.Labels[k.Label()] = string(uidOf(parent))
		guarded := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := k.Client.Patch(ctx, held, guarded); err != nil {
			return nil, "", fmt.Errorf("adopting it: %w", err)
		}
	default:
		k.noteRead(held) // nothing is written, so its version is not ours
	}
	made = child.object.DeepCopy()
	made.SetUID(held.UID)
	made.SetResourceVersion(held.ResourceVersion)
	return made, k.recordsIn(held), nil
}

// makeUntilDone makes a child unless it is done. One whose former declaration is done is replaced.
func (p *pass) makeUntilDone(ctx context.Context, child declared, seen *application) (result, error) {
	before, now := p.known[child.identity].run, run{digest: child.digest}
	same := before.digest == now.digest || child.rules.Once && before.digest != ""
	if same {
		now = before.then(seen.runOf(before.digest))
	}
	if now.outcome != "" {
		return result{run: now}, nil
	}
	held, err := p.keeper.getWhole(ctx, child)
	switch {
	case err != nil:
		return result{}, err
	case held == nil && same && !seen.isDeleted():
		logf.FromContext(ctx).Info("Counting a child as done, as it is gone and its end was not seen",
			"child", child.String())
		now.outcome = vanished
		return result{run: now}, nil
	case held != nil && !same && before.digest != "" && outcomeOf(held.Object) != "":
		return p.replace(ctx, child, held, now)
	}
	made, former, err := p.keeper.make(ctx, p.parent.Newest(), child, p.known[child.identity].uid)
	if fixed := (*fixedError)(nil); errors.As(err, &fixed) && held != nil && outcomeOf(held.Object) != "" {
		return p.replace(ctx, child, held, now)
	}
	if err != nil {
		return result{}, err
	}
	if child.rules.Once && held != nil {
		made = held
	}
	now.outcome = outcomeOf(made.Object)
	return result{made, former, now}, nil
}

// replace deletes a child that is done, and makes it as it is declared now.
func (p *pass) replace(
	ctx context.Context, child declared, held *unstructured.Unstructured, now run,
) (result, error) {
	parent, metadata := p.parent.Newest(), metadataOf(held)
	switch {
	case !p.keeper.isProven(parent, metadata, p.known[child.identity].uid):
		return result{}, p.keeper.strangerError(parent, metadata)
	case p.keeper.retainedBy(metadata) != "":
		return result{}, errRetainedDone
	}
	if err := p.keeper.delete(ctx, metadata); err != nil {
		return result{}, fmt.Errorf("deleting it, as it is done and declared otherwise now: %w", err)
	}
	made, former, err := p.keeper.make(ctx, parent, child, "")
	if err != nil {
		return result{}, err
	}
	logf.FromContext(ctx).Info("Replaced a child that was done by its new declaration", "child", child.String())
	return result{made, former, now}, nil
}

// getWhole reads the object that is there; nil if there is none.
func (k *Keeper) getWhole(ctx context.Context, child declared) (*unstructured.Unstructured, error) {
	held := &unstructured.Unstructured{}
	held.SetGroupVersionKind(child.object.GroupVersionKind())
	if err := k.Live.Get(ctx, child.key(), held); apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // absence is an answer
	} else if err != nil {
		return nil, fmt.Errorf("looking for it: %w", err)
	}
	return held, nil
}

// metadataOf is that of a whole object.
func metadataOf(held *unstructured.Unstructured) *metav1.PartialObjectMetadata {
	metadata := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: held.GetNamespace(), Name: held.GetName(), UID: held.GetUID(), Labels: held.GetLabels(),
		Annotations: held.GetAnnotations(), OwnerReferences: held.GetOwnerReferences(),
		DeletionTimestamp: held.GetDeletionTimestamp(),
	}}
	metadata.SetGroupVersionKind(held.GroupVersionKind())
	return metadata
}
