package patching

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A write that lost five races in a row is better begun anew, by a later pass, than pressed on with.
const maxAttempts = 5

// A Refetch reads the object anew, live. An object that does not exist is a nil body or an error for
// apierrors.IsNotFound.
type Refetch func(ctx context.Context) (map[string]any, error)

// ApplyRetrying is Apply that settles conflicts within the pass: it reads the object anew and applies what remains to
// it, up to five times in all (deviation D-finalizer-same-pass; Kopf carries the functions over to the next event). A
// nil refetch reads by the Writer's own client.
//
// # Flow
//
// The merge-patch is repeated as it is, if it was not written before the conflict; the transformations run again on the
// fresh body. So it is for patches whose merge part holds whatever the others have done.
//
// # Errors
//
// ErrReplaced if the name belongs to another object now. ErrConflict, with Result.Remaining, if all attempts were in
// vain, and for an unguarded request that got a 409: that was no guard of ours. ErrRefused if one and the same version
// was refused twice, so that it is not the version. All others are Apply's.
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
		if attempt == maxAttempts || !w.retriable(err) {
			return total, err
		}
		fresh, err := renewed(ctx, target.Body, refetch, attempt, err)
		if fresh == nil {
			total.Gone = err == nil
			total.Remaining = Patch{}
			return total, err
		}
		target.Body, p = fresh, result.Remaining
	}
}

// retriable tells whether a fresh body would help: without a version in the request, a 409 is no guard of ours.
func (w *Writer) retriable(err error) bool {
	return errors.Is(err, ErrConflict) && (w.Guarded || w.Fold || !apierrors.IsConflict(err))
}

// renewed reads the object again after a conflict. Neither a body nor an error means that it is gone.
func renewed(
	ctx context.Context, seen map[string]any, refetch Refetch, attempt int, conflict error,
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
	case attempt > 1 && VersionOf(seen) == VersionOf(fresh) && apierrors.IsInvalid(conflict):
		// After the first attempt the body is a live one, so nobody had changed it, and the test did hold.
		return nil, fmt.Errorf("patching %s: %w, though nobody has changed the object: %w",
			describe(seen), ErrRefused, answerOf(conflict))
	}
	return fresh, nil
}

// joined is the result of two attempts, one after another.
func joined(earlier, later Result) Result {
	later.Requests += earlier.Requests
	later.Dropped = append(earlier.Dropped, later.Dropped...)
	if later.Body == nil {
		later.Body = earlier.Body
	}
	if later.StatusRefused == nil {
		later.StatusRefused = earlier.StatusRefused
	}
	return later
}
