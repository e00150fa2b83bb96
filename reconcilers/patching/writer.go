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

	"github.com/kopf-runtime/kopf-runtime/reconcilers/rawclient"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

// maxAttempts limits the attempts of ApplyRetrying: after five conflicts in a row, a later pass should begin anew.
const maxAttempts = 5

// A Client sends the requests of a Writer, which concern the objects of one resource. An answer is lent to the function
// that takes it, as a text.
type Client interface {
	// Get reads an object live, not from a cache.
	Get(ctx context.Context, key types.NamespacedName, take func(text []byte) error) error
	// Patch sends a patch of an object.
	Patch(ctx context.Context, key types.NamespacedName, p rawclient.Patch, take func(text []byte) error) error
}

var _ Client = (*rawclient.Client)(nil)

// A Writer sends patches. It has no state of its own and may be used concurrently.
//
// It sends at most two merge-patches, one to /status and one to the main resource, where Kopf sends up to four
// requests. Transformations are part of them. The patch of the main resource has the object's uid, and every patch that
// could overwrite others' changes has the resource version: the server then refuses to write to a wrong object.
type Writer struct {
	// Client sends the requests, of one resource.
	Client Client
	// FieldManager is the name under which the server records our fields; the default is the client's own.
	FieldManager string
	// Observer gets the fields that the server did not keep; it may be nil.
	Observer Observer
}

// An Observer gets facts about patches beside their Result.
type Observer interface {
	// Dropped is called with the fields of one patch that the server took, and did not keep, if there are any.
	Dropped(ctx context.Context, fields []diff.Path)
}

// A Target is the object to be written to.
type Target struct {
	// Body is the object as the handlers saw it, with apiVersion, kind and metadata. It is not modified.
	Body map[string]any
	// Opened is Body with its text, if that is known: what the API server's answers have in common with it is the same
	// value in them, and need not be decoded again.
	Opened *jsontext.Object
	// StatusSubresource tells that the status is written through /status, and only there.
	StatusSubresource bool
	// StatusDecides ends the write if /status is refused for its content: the error is that refusal, which is
	// Result.StatusRefused, too, and the main resource is not written.
	StatusDecides bool
}

// A Refetch reads the object anew, live. An object that does not exist is a nil body or an error for
// apierrors.IsNotFound.
type Refetch func(ctx context.Context) (map[string]any, error)

// A Result says what was written of a patch.
type Result struct {
	// Body is the server's last answer, nil if nothing was written. It has no managed fields, and must not be modified.
	Body map[string]any
	// Answer is Body with its text.
	Answer *jsontext.Object
	// Versions are those of all answers.
	Versions []string
	// Gone tells that the object does not exist any more. There is no error then.
	Gone bool
	// Released tells that the object was being deleted, and the last finalizer was removed by this patch: the version
	// in Body never arrives in a watch, so it must not be waited for.
	Released bool
	// StatusRefused is why /status was not written although the rest was: an error of class ErrRefused or a forbidden
	// request; or any error, if the rest takes finalizers from an object that is being deleted. It concerns the status
	// alone and is for the caller to report.
	StatusRefused error
	// Dropped are the fields that the server took, and did not keep: its schema does not have them.
	Dropped []diff.Path
	// Restored are the fields that were to be removed, and that the server has set to the same values as before.
	Restored []diff.Path
	// Remaining is the part that was not written because of an ErrConflict. It is empty otherwise.
	Remaining Patch
}

// Apply writes the patch to the object.
//
// # Flow
//
// /status goes first where it is a subresource, so that the write that closes a cause is the last one. A null for the
// whole status is not sent there, as in Kopf. Transformations are applied to the target's body after the merge-patch;
// nulls that they leave are removals. If they make no difference, nothing is sent for them.
//
// # Guarantees
//
// No request is repeated, but by the client, as the server says when. If the server refuses the content for /status,
// the main resource is written nevertheless, unless Target.StatusDecides. No failure of /status keeps the main
// resource from losing finalizers while the object is being deleted.
//
// # Errors
//
// ErrConflict, ErrReplaced, ErrRefused by errors.Is; all others, too, name what was being done to which object. If an
// answer does not show the object of the target, by its kind and uid, the outcome of the request is unknown, as without
// an answer. A result comes with every error: it tells what had been written before.
func (w *Writer) Apply(ctx context.Context, target Target, p Patch) (Result, error) {
	if p.Empty() {
		return Result{}, nil
	}
	x := &exchange{writer: w, target: target, current: target.Body, opened: target.Opened, remaining: p}
	err := x.apply(ctx, p)
	if errors.Is(err, ErrConflict) {
		x.result.Remaining = x.remaining
	}
	if w.Observer != nil && len(x.result.Dropped) > 0 {
		w.Observer.Dropped(ctx, x.result.Dropped)
	}
	x.result.Released = !x.result.Gone && x.result.Body != nil && released(x.result.Body)
	return x.result, err
}

// Get reads the object live, without its managed fields. An object that does not exist is an error for
// apierrors.IsNotFound.
func (w *Writer) Get(ctx context.Context, gvk schema.GroupVersionKind, key client.ObjectKey) (map[string]any, error) {
	var body map[string]any
	err := w.Client.Get(ctx, key, func(text []byte) (err error) {
		if _, body, err = answered(text, nil); err == nil {
			err = confirm(body, gvk.Kind, "")
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s %s %s: %w", gvk.GroupVersion(), gvk.Kind, key, err)
	}
	return body, nil
}

// reread is Get for the object of this body.
func (w *Writer) reread(ctx context.Context, body map[string]any) (map[string]any, error) {
	object := unstructured.Unstructured{Object: body}
	return w.Get(ctx, object.GroupVersionKind(), client.ObjectKeyFromObject(&object))
}

// ApplyRetrying is Apply that settles conflicts within the pass: it reads the object anew and applies what remains to
// it, up to five times in all (deviation D-finalizer-same-pass; Kopf carries the functions over to the next event). A
// nil refetch reads by the Writer's own client.
//
// # Flow
//
// The merge-patch is repeated as it is, if it was not written before the conflict; the transformations run again on
// the fresh body. So the merge-patch must be valid whatever others have changed.
//
// # Errors
//
// ErrReplaced if the name belongs to another object now. ErrConflict, with Result.Remaining, if all attempts ended in
// conflicts. All others are Apply's.
//
// The Result is that of all attempts together.
func (w *Writer) ApplyRetrying(ctx context.Context, target Target, p Patch, refetch Refetch) (Result, error) {
	if refetch == nil {
		refetch = func(ctx context.Context) (map[string]any, error) { return w.reread(ctx, target.Body) }
	}
	var total Result
	for attempt := 1; ; attempt++ {
		result, err := w.Apply(ctx, target, p)
		total = joined(total, result)
		if attempt == maxAttempts || !errors.Is(err, ErrConflict) {
			return total, err
		}
		fresh, err := renewed(ctx, target.Body, refetch, err)
		if fresh == nil {
			total.Gone = err == nil
			total.Remaining = Patch{}
			return total, err
		}
		target.Body, target.Opened, p = fresh, nil, result.Remaining
	}
}

// renewed reads the object again after a conflict. A nil body without an error means that it is gone.
func renewed(
	ctx context.Context, seen map[string]any, refetch Refetch, conflict error,
) (map[string]any, error) {
	fresh, err := refetch(ctx)
	switch {
	case apierrors.IsNotFound(err), err == nil && fresh == nil:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading %s again after a conflict: %w", describe(seen), err)
	case !sameObject(seen, fresh):
		return nil, fmt.Errorf("patching %s: %w: uid %s, now %s: %w",
			describe(seen), ErrReplaced, UIDOf(seen), UIDOf(fresh), answerOf(conflict))
	}
	return fresh, nil
}

// joined gives the result of two attempts, one after another.
func joined(earlier, later Result) Result {
	later.Versions = append(earlier.Versions, later.Versions...)
	later.Restored = append(earlier.Restored, later.Restored...)
	later.Dropped = append(earlier.Dropped, later.Dropped...)
	if later.Body == nil {
		later.Body, later.Answer = earlier.Body, earlier.Answer
	}
	if later.StatusRefused == nil {
		later.StatusRefused = earlier.StatusRefused
	}
	return later
}
