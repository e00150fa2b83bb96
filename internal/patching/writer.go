package patching

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// maxAttempts limits the attempts of ApplyRetrying. After five conflicts in a row, a later pass should start from the
// new state.
const maxAttempts = 5

// PatchClient sends the requests of a [PatchWriter] for the objects of one resource. The text of an answer is valid
// only during the call of take.
type PatchClient interface {
	// Get reads an object from the API server, not from a cache.
	Get(ctx context.Context, key types.NamespacedName, take func(text []byte) error) error
	// Patch sends a patch of an object.
	Patch(ctx context.Context, key types.NamespacedName, p RawPatch, take func(text []byte) error) error
}

var _ PatchClient = (*ObjectClient)(nil)

// PatchWriter sends patches. It does not have a state, and its methods may be called concurrently.
//
// It sends at most two merge-patches, one to /status and one to the main resource; Kopf sends up to four requests.
// Transformations are part of them. The patch of the main resource has the object's uid, and every patch that could
// overwrite the changes of others has the resource version. So the server refuses to write to another object or to an
// unexpected state.
type PatchWriter struct {
	// Client sends the requests. It is for one resource.
	Client PatchClient
	// FieldManager is the name under which the server records the written fields. The default is the client's field
	// manager.
	FieldManager string
	// OnDropped is called with the fields of a patch that the server accepted but did not store, if there are any. It
	// may be nil.
	OnDropped func(ctx context.Context, fields []diff.Path)
}

// A Target is the object to write to.
type Target struct {
	// Body is the object as the handlers saw it, with apiVersion, kind and metadata. It is not modified.
	Body map[string]any
	// StatusSubresource is true if the status is written through /status, and only there.
	StatusSubresource bool
	// StopIfStatusRefused ends the write if the content of /status is refused. The refusal is returned both as the
	// error and in the result, and the main resource is not written.
	StopIfStatusRefused bool
}

// WriteResult reports which parts of a patch were written.
type WriteResult struct {
	// Body is the server's last answer, and nil if nothing was written. It does not have managed fields, and must not
	// be modified.
	Body map[string]any
	// Answer is Body with its text.
	Answer *jsontext.LazyObject
	// Fresh is the object as it was read again after the last conflict; nil without a conflict.
	Fresh map[string]any
	// Versions are the resource versions of all answers. Events with these versions are own writes.
	Versions []string
	// Gone is true if the object does not exist any more. This is not an error.
	Gone bool
	// Released is true if this patch removed the last finalizer of an object that is being deleted. The version in Body
	// never arrives in a watch then, so callers must not wait for it.
	Released bool
	// StatusRefusal is the reason why /status was not written although the rest was: an error of class ErrRefused, or a
	// forbidden request. If the rest removes finalizers from an object that is being deleted, it can be any error. It
	// concerns the status only, and the caller should report it.
	StatusRefusal error
	// DroppedFields are the fields that the server accepted but did not store, because its schema does not have them.
	DroppedFields []diff.Path
	// RestoredFields are the fields that the patch removed, and that the server has set to the same values as before.
	RestoredFields []diff.Path
	// Remaining is the part that was not written because of an ErrConflict. Otherwise, it is empty.
	Remaining Patch
}

// Apply writes the patch to the object.
//
// # Flow
//
// If there is a /status subresource, it is written first, so that the write that closes a cause is the last one. As in
// Kopf, a null for the whole status is not sent there. Transformations are applied to the target's body after the
// merge-patch; nulls that they leave are removals. If they do not change anything, no request is sent for them.
//
// # Guarantees
//
// No request is repeated, except by the client when the server asks for it. If the server refuses the content of
// /status, the main resource is written nevertheless, unless Target.StopIfStatusRefused is true. A failure of /status
// never prevents the removal of finalizers while the object is being deleted.
//
// # Errors
//
// ErrConflict, ErrReplaced and ErrRefused are detected by errors.Is. All errors name the action and the object. If an
// answer does not have the kind and uid of the target, the outcome of the request is unknown, as without an answer.
// Every error is returned with a [WriteResult], which reports the parts that were written before.
func (w *PatchWriter) Apply(ctx context.Context, target Target, p Patch) (WriteResult, error) {
	if p.IsEmpty() {
		return WriteResult{}, nil
	}
	x := &exchange{writer: w, target: target, currentBody: target.Body, remaining: p}
	err := x.applyPatch(ctx, p)
	// Only a conflict can be resolved by applying the rest to the fresh object.
	if errors.Is(err, ErrConflict) {
		x.result.Remaining = x.remaining
	}
	if w.OnDropped != nil && len(x.result.DroppedFields) > 0 {
		w.OnDropped(ctx, x.result.DroppedFields)
	}
	// The last answer shows whether the object still has finalizers.
	x.result.Released = !x.result.Gone && x.result.Body != nil && isReleased(x.result.Body)
	return x.result, err
}

// Get reads the object from the API server, without its managed fields. If the object does not exist, it returns an
// error for apierrors.IsNotFound.
func (w *PatchWriter) Get(
	ctx context.Context, gvk schema.GroupVersionKind, key client.ObjectKey,
) (map[string]any, error) {
	var body map[string]any
	err := w.Client.Get(ctx, key, func(text []byte) (err error) {
		if _, body, err = decodeAnswer(text); err == nil {
			err = confirmAnswer(body, gvk.Kind, "")
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s %s %s: %w", gvk.GroupVersion(), gvk.Kind, key, err)
	}
	return body, nil
}

// readAgain reads the current state of the object of this body.
func (w *PatchWriter) readAgain(ctx context.Context, body map[string]any) (map[string]any, error) {
	object := unstructured.Unstructured{Object: body}
	return w.Get(ctx, object.GroupVersionKind(), client.ObjectKeyFromObject(&object))
}

// ApplyRetrying is Apply that resolves conflicts within the pass: it reads the object again and applies the rest to it,
// with five attempts in total (deviation D-finalizer-same-pass; Kopf defers the functions to the next event).
//
// # Flow
//
// The merge-patch is repeated unchanged if it was not written before the conflict. The transformations run again on the
// fresh body. So the merge-patch must be valid for any changes of others.
//
// # Errors
//
// It returns ErrReplaced if another object has the name now. It returns ErrConflict, with the remaining patch in the
// result, if all attempts ended in conflicts. Otherwise, it returns the errors of Apply.
//
// The result covers all attempts.
func (w *PatchWriter) ApplyRetrying(ctx context.Context, target Target, p Patch) (WriteResult, error) {
	var total WriteResult
	for attempt := 1; ; attempt++ {
		result, err := w.Apply(ctx, target, p)
		total = joinResults(total, result)
		if attempt == maxAttempts || !errors.Is(err, ErrConflict) {
			return total, err
		}
		// From here on, err is the error of the reading, and not the conflict.
		fresh, err := w.rereadAfterConflict(ctx, target.Body, err)
		if fresh == nil {
			total.Gone = err == nil
			total.Remaining = Patch{}
			return total, err
		}
		total.Fresh = fresh
		target.Body, p = fresh, result.Remaining
	}
}

// rereadAfterConflict reads the object again after a conflict. A nil body without an error means that the object does
// not exist any more.
func (w *PatchWriter) rereadAfterConflict(
	ctx context.Context, seen map[string]any, conflict error,
) (map[string]any, error) {
	fresh, err := w.readAgain(ctx, seen)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading %s again after a conflict: %w", describeObject(seen), err)
	case !sameObject(seen, fresh):
		return nil, fmt.Errorf("patching %s: %w: uid %s, now %s: %w",
			describeObject(seen), ErrReplaced, ObjectUID(seen), ObjectUID(fresh), unclassifiedError(conflict))
	}
	return fresh, nil
}

// joinResults returns the result of two consecutive attempts. The later one takes precedence.
func joinResults(earlier, later WriteResult) WriteResult {
	later.Fresh = earlier.Fresh
	later.Versions = append(earlier.Versions, later.Versions...)
	later.RestoredFields = append(earlier.RestoredFields, later.RestoredFields...)
	later.DroppedFields = append(earlier.DroppedFields, later.DroppedFields...)
	if later.Body == nil {
		later.Body, later.Answer = earlier.Body, earlier.Answer
	}
	if later.StatusRefusal == nil {
		later.StatusRefusal = earlier.StatusRefusal
	}
	return later
}
