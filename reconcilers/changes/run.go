package changes

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

// ErrDeleted is the cancellation cause of a function whose object is gone, or is another one under the same name.
var ErrDeleted = execution.ErrDeleted

// run calls the handlers that are due, in order, each on a copy of the object with the changes of those before it.
func (p *pass) run(ctx context.Context) (verdict, error) {
	if p.working == nil {
		p.working = p.body
	}
	for _, entry := range p.Lifecycle.Pick(p.due()) {
		if p.interrupted(ctx) {
			break
		}
		s := &supervision{pass: p, attempt: p.attempt(p.handlerOf(entry), entry, p.working)}
		if err := s.run(ctx); err != nil {
			return stop, err
		}
		if p.gone {
			return stop, nil
		}
	}
	return goOn, nil
}

// due are the accounts of the handlers that may be called now, each once, in the order of registration.
func (p *pass) due() (due []*execution.HandlerState) {
	for _, handler := range p.selected {
		entry := p.state.Handler(handler.ID)
		if entry.Awakened(p.now()) && !slices.Contains(due, entry) {
			due = append(due, entry)
		}
	}
	return due
}

func (p *pass) handlerOf(entry *execution.HandlerState) *handlers.Handler {
	at := slices.IndexFunc(p.selected, func(h *handlers.Handler) bool { return h.ID == entry.ID })
	return p.selected[at]
}

// interrupted tells whether the remaining handlers must wait: for the next process, or for the deletion that our own
// write has brought to light.
func (p *pass) interrupted(ctx context.Context) bool {
	p.exiting = p.exiting || ctx.Err() != nil
	return p.exiting || !p.cause.Deleting && patching.BeingDeleted(p.body)
}

// attempt is a call to be made on a copy of the object.
func (p *pass) attempt(
	handler *handlers.Handler, entry *execution.HandlerState, object map[string]any,
) *execution.Attempt {
	now := p.now()
	return &execution.Attempt{
		Call: handlers.Call{
			Handler: handler, Cause: p.cause, Object: runtime.DeepCopyJSON(object),
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
	patch := patching.Patch{Transforms: patching.Contained(transforms)}
	if err := patch.AddResult(a.Call.Handler.ID, a.Result()); err != nil || patch.Empty() {
		return object
	}
	changed, err := patch.ApplyTo(object)
	if err != nil {
		return object
	}
	return changed
}
