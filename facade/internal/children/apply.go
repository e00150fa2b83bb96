package children

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// tries is how often a child is applied whose object changes under our hands.
const tries = 3

// uidField is the one that a condition of a request stands in.
const uidField = "metadata.uid"

var errTerminating = errors.New("it is being deleted: it is applied again when it is gone")

// apply makes the child what was declared, and returns what it is then, with the records that the object named before
// as far as it was read. The uid is that of the object that this process has applied before: a condition of the
// request, so that no other object of the name is touched. If it is empty, the object is read and checked first.
//
// The API server compares: with nothing to change, it writes nothing.
func (k *Keeper) apply(
	ctx context.Context, parent map[string]any, child declared, uid types.UID,
) (made *unstructured.Unstructured, former string, err error) {
	for attempt := 1; ; attempt++ {
		var held *metav1.PartialObjectMetadata
		if uid == "" {
			if held, err = k.find(ctx, parent, child); err != nil {
				return nil, "", err
			}
		}
		if held != nil {
			former = k.recordsIn(held)
			made, err = k.applyFirst(ctx, parent, child, held)
		} else {
			made, err = k.applyOnce(ctx, parent, child, uid)
		}
		switch {
		case isAnother(err) && attempt < tries:
			uid = ""
		case fixedIn(err) != nil:
			return nil, "", fixedIn(err)
		case err != nil:
			return nil, "", fmt.Errorf("applying it: %w", err)
		case made.GetDeletionTimestamp() != nil:
			return nil, "", &waitError{errTerminating}
		default:
			return made, former, nil
		}
	}
}

// applyOnce sends the child to the API server, on condition that the object there, if any, has the uid.
func (k *Keeper) applyOnce(
	ctx context.Context, parent map[string]any, child declared, uid types.UID,
) (*unstructured.Unstructured, error) {
	applied := child.object.DeepCopy()
	applied.SetUID(uid)
	err := k.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied))
	if conflicts := conflictsOf(err); conflicts != nil {
		err = k.settle(ctx, parent, child, uid, applied, conflicts)
	}
	return applied, err
}

// find returns the object on the server, if it is a child of the parent; nil if there is none.
func (k *Keeper) find(
	ctx context.Context, parent map[string]any, child declared,
) (*metav1.PartialObjectMetadata, error) {
	held, err := k.get(ctx, child.identity, child.object.GroupVersionKind().Version)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("looking for it: %w", err)
	case !k.isAdoptable(parent, child, held):
		return nil, k.strangerError(parent, held)
	case held.DeletionTimestamp != nil:
		return nil, &waitError{errTerminating}
	}
	k.noteRead(held)
	return held, nil
}

// get reads the metadata of the object that is there.
func (k *Keeper) get(ctx context.Context, child identity, version string) (*metav1.PartialObjectMetadata, error) {
	held := &metav1.PartialObjectMetadata{}
	held.SetGroupVersionKind(child.in(version))
	return held, k.Live.Get(ctx, child.key(), held)
}

// getServed is get in the given version, or in another one that the cluster serves: the version may be gone, and a
// record on the parent can have any.
func (k *Keeper) getServed(
	ctx context.Context, child identity, version string,
) (*metav1.PartialObjectMetadata, error) {
	held, err := k.get(ctx, child, version)
	if !meta.IsNoMatchError(err) {
		return held, err
	}
	mapping, err := k.Client.RESTMapper().RESTMapping(child.in(version).GroupKind())
	if err != nil {
		return nil, err
	}
	return k.get(ctx, child, mapping.GroupVersionKind.Version)
}

// isAnother tells whether the API server has refused a request because of the uid in it: the object that we knew is
// gone, and there may be another one of its name.
func isAnother(err error) bool {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		return false
	}
	status := known.Status()
	if apierrors.IsConflict(err) {
		return conflictsOf(err) == nil
	}
	if status.Details == nil || !apierrors.IsInvalid(err) {
		return false
	}
	for _, cause := range status.Details.Causes {
		if cause.Field == uidField {
			return true
		}
	}
	return false
}

// settle goes on after a conflict over fields: what somebody has edited is set back; what somebody else declares as
// well is an error, as both would go on for ever.
func (k *Keeper) settle(
	ctx context.Context, parent map[string]any, child declared, uid types.UID, applied *unstructured.Unstructured,
	found conflicts,
) error {
	held, err := k.get(ctx, child.identity, child.object.GroupVersionKind().Version)
	switch {
	case err != nil:
		return fmt.Errorf("looking who has changed it: %w", err)
	case uid == "" && !k.isOf(parent, held): // it was created after find had found nothing
		return k.strangerError(parent, held)
	}
	if rivals := found.declaredBy(held.ManagedFields); len(rivals) > 0 {
		return rivals.err()
	}
	logf.FromContext(ctx).Info("Setting back fields of a child that others have changed",
		"child", child.String(), "fields", found.fields(), "managers", found.managers())
	k.noteRead(held)
	applied.Object = child.object.DeepCopy().Object
	applied.SetUID(uid)
	return k.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.ForceOwnership)
}

// remove deletes a child of the parent that a record lists, if this operator has applied it. The entry has the uid that
// is proven: without one, only the child itself says whether it is to be retained.
func (k *Keeper) remove(ctx context.Context, parent map[string]any, child identity, known entry) error {
	log := logf.FromContext(ctx).WithValues("child", child.String())
	held, err := k.getServed(ctx, child, known.version)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil
	case err != nil:
		return fmt.Errorf("looking for %s, to delete it: %w", child, err)
	case !k.isProven(parent, held, known.uid):
		log.Info("Leaving an object that is no child of this one any more")
		return nil
	case known.retained && known.uid != "", k.retainedBy(held) != "":
		log.Info("Leaving a child that is not declared any more, as it is to be retained")
		return nil
	case held.DeletionTimestamp != nil:
		return nil
	}
	if err := k.delete(ctx, held); err != nil {
		return fmt.Errorf("deleting %s, which is not declared any more: %w", child, err)
	}
	log.Info("Deleted a child that is not declared any more")
	return nil
}

// delete deletes this very object.
func (k *Keeper) delete(ctx context.Context, held *metav1.PartialObjectMetadata) error {
	return client.IgnoreNotFound(k.Client.Delete(ctx, held, client.Preconditions{UID: &held.UID},
		client.PropagationPolicy(metav1.DeletePropagationBackground)))
}

// waitError is about something that will be over soon.
type waitError struct{ err error }

// Error is the text of the reason.
func (e *waitError) Error() string { return e.err.Error() }

// Unwrap gives the reason.
func (e *waitError) Unwrap() error { return e.err }

// RetryAfter makes it a temporary error.
func (e *waitError) RetryAfter() time.Duration { return 5 * time.Second }
