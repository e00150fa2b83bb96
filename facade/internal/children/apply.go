package children

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// maxAttempts is the number of attempts to apply or create a child if another client replaces or creates the object
// meanwhile.
const maxAttempts = 3

// uidField is the field that the API server names in its answer if the uid in a request does not match the object. The
// uid makes the request conditional.
const uidField = "metadata.uid"

var errTerminating = errors.New("it is being deleted: it is applied again when it is gone")

// applyChild applies the child as declared. It returns the resulting object, and the record names that the object had
// before, if the object was read. The uid is that of the object that this process has applied before. It is a condition
// of the request: another object of the same name stays untouched. If it is empty, the object is read and checked
// first.
//
// Every call sends a request, even without a change: the API server compares, and it writes nothing if nothing differs.
func (k *Keeper) applyChild(
	ctx context.Context, parent map[string]any, child declaredChild, uid types.UID,
) (made *unstructured.Unstructured, former string, err error) {
	for attempt := 1; ; attempt++ {
		var held *metav1.PartialObjectMetadata
		if uid == "" {
			if held, err = k.findChild(ctx, parent, child); err != nil {
				return nil, "", err
			}
		}
		if held != nil {
			former = k.recordNames(held)
			made, err = k.applyFirst(ctx, parent, child, held)
		} else {
			made, err = k.applyOnce(ctx, parent, child, uid)
		}
		switch {
		// The object was replaced under the same name. The next attempt reads the new object and checks whether it is a
		// child.
		case isUIDMismatch(err) && attempt < maxAttempts:
			uid = ""
		case asImmutableFieldError(err) != nil:
			return nil, "", asImmutableFieldError(err)
		case err != nil:
			return nil, "", fmt.Errorf("applying it: %w", err)
		// An apply to an object in deletion succeeds, but the object disappears. A temporary error leads to another
		// attempt.
		case made.GetDeletionTimestamp() != nil:
			return nil, "", &waitError{errTerminating}
		default:
			return made, former, nil
		}
	}
}

// applyOnce sends one server-side apply. The API server refuses it if the existing object has another uid. A conflict
// over fields is resolved or returned as an error, see [Keeper.resolveConflicts].
func (k *Keeper) applyOnce(
	ctx context.Context, parent map[string]any, child declaredChild, uid types.UID,
) (*unstructured.Unstructured, error) {
	// The client overwrites its argument with the response, so the declaration itself must not be passed.
	applied := child.object.DeepCopy()
	applied.SetUID(uid)
	err := k.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied))
	if conflicts := conflictsOf(err); conflicts != nil {
		err = k.resolveConflicts(ctx, parent, child, uid, applied, conflicts)
	}
	return applied, err
}

// findChild returns the metadata of the existing object if it is a child of the parent, and nil if there is no such
// object. An object that is not a child, or that is being deleted, is an error.
func (k *Keeper) findChild(
	ctx context.Context, parent map[string]any, child declaredChild,
) (*metav1.PartialObjectMetadata, error) {
	held, err := k.getMetadata(ctx, child.identity, child.object.GroupVersionKind().Version)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("looking for it: %w", err)
	// Even a foreign object with this name must not be changed.
	case !k.isAdoptable(parent, child, held):
		return nil, k.strangerError(parent, held)
	case held.DeletionTimestamp != nil:
		return nil, &waitError{errTerminating}
	}
	k.noteRead(held)
	return held, nil
}

// getMetadata reads the metadata of the existing object from the API server, not from the cache: a stale state could
// lead to writes to an object of another parent.
func (k *Keeper) getMetadata(
	ctx context.Context, child identity, version string,
) (*metav1.PartialObjectMetadata, error) {
	held := &metav1.PartialObjectMetadata{}
	held.SetGroupVersionKind(child.versionedKind(version))
	return held, k.APIReader.Get(ctx, child.namespacedName(), held)
}

// getAnyVersion reads the metadata like [Keeper.getMetadata], in the given version or in another one that the cluster
// serves. A record on the parent can name a version that was removed from the API.
func (k *Keeper) getAnyVersion(
	ctx context.Context, child identity, version string,
) (*metav1.PartialObjectMetadata, error) {
	held, err := k.getMetadata(ctx, child, version)
	if !meta.IsNoMatchError(err) {
		return held, err
	}
	// Without a version, the mapper returns the preferred one. The object is the same in all versions.
	mapping, err := k.Client.RESTMapper().RESTMapping(child.versionedKind(version).GroupKind())
	if err != nil {
		return nil, err
	}
	return k.getMetadata(ctx, child, mapping.GroupVersionKind.Version)
}

// isUIDMismatch reports whether the API server has refused a request because of its uid. The known object is gone, and
// there may be another one of its name.
func isUIDMismatch(err error) bool {
	// Server-side apply answers with a conflict both for a wrong uid and for fields of other managers. Only the latter
	// lists its causes.
	if apierrors.IsConflict(err) {
		return conflictsOf(err) == nil
	}
	// The API server can also answer that the uid is invalid, because it is an immutable field.
	return apierrors.IsInvalid(err) && slices.ContainsFunc(causesOf(err), func(cause metav1.StatusCause) bool {
		return cause.Field == uidField
	})
}

// resolveConflicts resolves a conflict over fields. Edits by other managers are overwritten. Fields that another
// manager applies as well are an error: both managers would overwrite each other forever.
func (k *Keeper) resolveConflicts(
	ctx context.Context, parent map[string]any, child declaredChild, uid types.UID, applied *unstructured.Unstructured,
	found conflicts,
) error {
	held, err := k.getMetadata(ctx, child.identity, child.object.GroupVersionKind().Version)
	switch {
	case err != nil:
		return fmt.Errorf("looking who has changed it: %w", err)
	case uid == "" && !k.isChildOf(parent, held): // it was created after the check for an existing object
		return k.strangerError(parent, held)
	}
	if rivals := found.fromAppliers(held.ManagedFields); len(rivals) > 0 {
		return rivals.asError()
	}
	logf.FromContext(ctx).Info("Setting back fields of a child that others have changed",
		"child", child.String(), "fields", found.fieldPaths(), "managers", found.managerNames())
	// The version before our write makes it possible to recognize the event of this write later.
	k.noteRead(held)
	applied.Object = child.object.DeepCopy().Object
	applied.SetUID(uid)
	return k.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.ForceOwnership)
}

// deleteListed deletes a child that a record of the parent lists, provided that this operator has applied it. An absent
// child is not an error. The uid of the entry is proven or empty. If it is empty, only the annotation on the child
// decides whether the child is retained.
func (k *Keeper) deleteListed(ctx context.Context, parent map[string]any, child identity, known childEntry) error {
	log := logf.FromContext(ctx).WithValues("child", child.String())
	held, err := k.getAnyVersion(ctx, child, known.version)
	switch {
	// The kind can be gone with its CRD, and all of its objects with it.
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil
	case err != nil:
		return fmt.Errorf("looking for %s, to delete it: %w", child, err)
	// Anyone who may annotate the parent can list any object in a record. The record alone must not delete it.
	case !k.isProven(parent, held, known.uid):
		log.Info("Leaving an object that is no child of this one any more")
		return nil
	case known.isRetained && known.uid != "", k.retainedBy(held) != "":
		log.Info("Leaving a child that is not declared any more, as it is to be retained")
		return nil
	// Its finalizers run; another delete request has no effect.
	case held.DeletionTimestamp != nil:
		return nil
	}
	if err := k.deleteObject(ctx, held); err != nil {
		return fmt.Errorf("deleting %s, which is not declared any more: %w", child, err)
	}
	log.Info("Deleted a child that is not declared any more")
	return nil
}

// deleteObject deletes exactly this object: the uid is a precondition, so a new object of the same name survives.
// Background propagation returns without waiting for the dependents.
func (k *Keeper) deleteObject(ctx context.Context, held *metav1.PartialObjectMetadata) error {
	return client.IgnoreNotFound(k.Client.Delete(ctx, held, client.Preconditions{UID: &held.UID},
		client.PropagationPolicy(metav1.DeletePropagationBackground)))
}

// waitError wraps a condition that will soon be over, such as a child in deletion. It makes the handler's attempt
// retry.
type waitError struct{ err error }

// Error returns the text of the reason.
func (e *waitError) Error() string { return e.err.Error() }

// Unwrap returns the reason.
func (e *waitError) Unwrap() error { return e.err }

// RetryAfter makes it a temporary error, with this delay until the next attempt.
func (e *waitError) RetryAfter() time.Duration { return 5 * time.Second }
