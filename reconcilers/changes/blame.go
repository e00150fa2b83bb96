package changes

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

// atFault tells whether it is the content that failed, so that the same write would fail again.
func atFault(err error) bool {
	var transform *patching.TransformError
	return errors.Is(err, patching.ErrRefused) || errors.As(err, &transform) ||
		apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// include adds to the patch what the attempt has to say, and tells how many functions that are.
func include(patch *patching.Patch, a *execution.Attempt) (int, error) {
	remembered := a.Remembered()
	patch.Transforms = append(patch.Transforms, patching.Contained(remembered)...)
	return len(remembered), patch.AddResult(a.Call.Handler.ID, a.Result())
}

// sift finds out whose content was refused, by writing that of each attempt alone, and makes that the failure of its
// handler. With nobody to ask, the refusal stays what it is.
func (p *pass) sift(ctx context.Context, attempts []*execution.Attempt, refusal error) error {
	for _, a := range attempts {
		if len(a.Remembered()) == 0 && a.Result() == nil {
			continue
		}
		switch err := p.offer(ctx, a); {
		case atFault(err):
			refusal = nil
			p.reject(ctx, a, err)
		case err != nil || p.gone:
			return err
		}
	}
	return refusal
}

// offer writes what one attempt has to say, and nothing else.
func (p *pass) offer(ctx context.Context, a *execution.Attempt) error {
	var patch patching.Patch
	written, err := include(&patch, a)
	if err != nil {
		return err
	}
	if err := p.send(ctx, patch); err != nil || p.gone {
		return err
	}
	p.report(ctx, []*execution.Attempt{a})
	a.Written(written)
	return nil
}

// report says whose status was refused by a write that was done without it.
func (p *pass) report(ctx context.Context, attempts []*execution.Attempt) {
	if p.refusal == nil {
		return
	}
	ids := make([]string, 0, len(attempts))
	for _, a := range attempts {
		ids = append(ids, a.Call.Handler.ID)
	}
	logf.FromContext(ctx).Error(
		p.refusal, "The status was refused; the rest is written. What these handlers had for it is lost", "handlers",
		ids,
	)
}

// reject drops what the attempt remembered. If it had succeeded, it has failed now: counted, delayed and limited like
// any other.
func (p *pass) reject(ctx context.Context, a *execution.Attempt, refusal error) {
	logf.FromContext(ctx).Error(refusal, "The changes of a handler were refused", "handler", a.Call.Handler.ID)
	a.Written(len(a.Remembered()))
	if a.Call.Cause != p.cause || !a.Outcome.Final || a.Outcome.Err != nil {
		return
	}
	a.Outcome = a.Limits.Judge(fmt.Errorf("the changes of the handler were refused: %w", refusal))
	p.state.Revise(a.Call.Handler.ID, a.Previous, a.Outcome, p.now())
	if found, err := p.success(p.state); err == nil && found == nil {
		p.interim = nil
	}
}
