package changes

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// retryUnwritten writes what a former pass could not, before anything else is done: no handler is called while its
// outcome could not be kept. It is the same write, only later, whatever has become of the object; then all is looked at
// anew. If that fails again, only a deletion that has begun since goes on: with what is left, which its handlers see.
func (p *pass) retryUnwritten(ctx context.Context, seen *observation, busy bool) (left *outcomes, _ verdict, _ error) {
	kept := p.memory.unwritten
	if kept == nil {
		return nil, goOn, nil
	}
	observed := p.object
	p.outcomes = kept
	err := p.writeAgain(ctx, kept, seen, busy)
	if err == nil {
		p.memory.Initial = p.memory.Initial || kept.cause.Initial && !kept.state.Done()
		return nil, startOver, nil
	}
	if !seen.cause.Deleting || kept.cause.Deleting {
		return nil, stop, err
	}
	logf.FromContext(ctx).Error(err, "Failed to write former changes; calling the deletion handlers, which see them")
	observed.answer = p.object.answer
	p.object, p.outcomes = observed, nil
	return kept, goOn, nil
}

func (p *pass) writeAgain(ctx context.Context, kept *outcomes, seen *observation, busy bool) error {
	if !diff.Equal(asValue(kept.seen.stored), asValue(seen.stored)) {
		// The cause was closed: by that very write, whose answer was lost, or by another process.
		return p.writeChangesAlone(ctx, kept.attempts)
	}
	kept.seen, kept.busy = seen, busy
	return p.save(ctx, kept)
}

// writeChangesAlone writes what handlers of a closed cause wanted. What is refused is nobody's failure any more.
func (p *pass) writeChangesAlone(ctx context.Context, attempts []*execution.Attempt) error {
	for _, a := range attempts {
		err := p.writeAlone(ctx, a)
		switch {
		case contentRefused(err):
			logRefused(ctx, a, err)
		case err != nil:
			return err
		case p.object.gone:
			return nil
		}
	}
	p.memory.unwritten = nil
	return nil
}

// contentRefused tells whether the write failed for its content: the same write would fail again.
func contentRefused(err error) bool {
	var transform *patching.TransformError
	return errors.Is(err, patching.ErrRefused) || errors.As(err, &transform) ||
		apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// failRefused finds out whose content was refused, by writing that of each attempt alone, and makes that the failure of
// its handler. If no content is refused alone, the refusal of the whole remains.
func (p *pass) failRefused(ctx context.Context, handled *outcomes, refusal error) error {
	for _, a := range handled.attempts {
		if len(a.Remembered()) == 0 && a.Result() == nil {
			continue
		}
		switch err := p.writeAlone(ctx, a); {
		case contentRefused(err):
			refusal = nil
			p.reject(ctx, handled, a, err)
		case err != nil || p.object.gone:
			return err
		}
	}
	return refusal
}

// writeAlone writes the changes and the result of one attempt, and nothing else.
func (p *pass) writeAlone(ctx context.Context, a *execution.Attempt) error {
	var patch patching.Patch
	written, err := include(&patch, a)
	if err != nil {
		return err
	}
	if err := p.object.send(ctx, patch); err != nil || p.object.gone {
		return err
	}
	p.logStatusRefusal(ctx, []*execution.Attempt{a})
	a.Written(written)
	return nil
}

// logStatusRefusal logs whose status was refused by a write that was done without it.
func (p *pass) logStatusRefusal(ctx context.Context, attempts []*execution.Attempt) {
	if p.object.refusal == nil {
		return
	}
	ids := make([]string, 0, len(attempts))
	for _, a := range attempts {
		ids = append(ids, a.Call.Handler.ID)
	}
	logf.FromContext(ctx).Error(p.object.refusal, "Status refused by the API server; the rest is written, "+
		"what these handlers had for the status is lost", "handlers", ids)
}

func logRefused(ctx context.Context, a *execution.Attempt, refusal error) {
	logf.FromContext(ctx).Error(refusal, "Changes of a handler refused by the API server", "handler", a.Call.Handler.ID)
}

// reject drops the changes of an attempt. If the attempt had succeeded, it has failed now: counted, delayed and limited
// like any other.
func (p *pass) reject(ctx context.Context, handled *outcomes, a *execution.Attempt, refusal error) {
	logRefused(ctx, a, refusal)
	a.Written(len(a.Remembered()))
	if a.Call.Cause != handled.cause || !a.Outcome.Final || a.Outcome.Err != nil {
		return
	}
	a.Outcome = a.Limits.Judge(fmt.Errorf("the changes of the handler were refused: %w", refusal))
	handled.state.Revise(a.Call.Handler.ID, a.Previous, a.Outcome, p.handling.now())
	if found, err := p.object.findSuccess(ctx, handled.state); err == nil && found == nil {
		handled.interim = nil
	}
}
