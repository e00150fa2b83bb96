package changes

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

// ErrDeleted is the cancellation cause of a function whose object is gone, or is another one under the same name.
var ErrDeleted = errors.New("the object is deleted")

// run calls the handlers that are due, in order, each on a copy of the object with the changes of those before it.
func (p *pass) run(ctx context.Context) (verdict, error) {
	if p.working == nil {
		p.working = p.body
	}
	for _, handler := range p.selected {
		entry := p.state.Entry(handler.ID)
		if !entry.Awakened(p.now()) {
			continue
		}
		if p.interrupted(ctx) {
			break
		}
		s := &supervision{pass: p, attempt: p.attempt(handler, entry)}
		if err := s.run(ctx); err != nil {
			return stop, err
		}
		if p.gone {
			return stop, nil
		}
	}
	return goOn, nil
}

// interrupted tells whether the remaining handlers must wait: for the next process, or for the deletion that our own
// write has brought to light.
func (p *pass) interrupted(ctx context.Context) bool {
	p.exiting = p.exiting || ctx.Err() != nil
	return p.exiting || !p.cause.Deleting && patching.BeingDeleted(p.body)
}

func (p *pass) attempt(handler *handlers.Handler, entry *execution.Entry) *execution.Attempt {
	now := p.now()
	return &execution.Attempt{
		Call: handlers.Call{
			Handler: handler, Cause: p.cause, Object: runtime.DeepCopyJSON(p.working),
			Retry: entry.Retries, Started: entry.Started, Events: p.Events,
		},
		Limits: execution.Limits{
			ID: handler.ID, Policy: handler.Policy, Mode: handlers.ErrorsTemporary, Backoff: p.Backoff,
			Retries: entry.Retries, Runtime: entry.Runtime(now),
		},
		Now: p.now,
	}
}

// withChanges is the object with what an attempt did to it. A function that does not fit it will be judged when it is
// written; here it changes nothing.
func withChanges(object map[string]any, a *execution.Attempt, transforms []patching.Transform) map[string]any {
	patch := patching.Patch{Transforms: contained(transforms)}
	if err := patch.AddResult(a.Call.Handler.ID, a.Result()); err != nil || patch.Empty() {
		return object
	}
	changed, err := patch.ApplyTo(object)
	if err != nil {
		return object
	}
	return changed
}
