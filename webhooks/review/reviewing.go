package review

import (
	"context"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

// reviewing is one review that is being served.
type reviewing struct {
	request  *request
	resource discovery.Resource
	cause    cause.Cause
	attempts []*execution.Attempt // in the order of the calls
}

// decode decodes as much of the objects as the handlers need that may be called.
func (r *reviewing) decode(all []*adapters.Handler) (err error) {
	admission := r.request.admission
	body, whole := false, false
	for _, h := range all {
		d := h.Description
		whole = whole || !d.ReadsText
		body = body || d.Answers(admission) && (d.Field != nil || len(d.Filters) > 0)
	}
	if whole {
		if r.cause.New, err = admission.Object.Value(); err != nil {
			return err
		}
		if r.cause.Old, err = admission.Old.Value(); err != nil {
			return err
		}
		r.cause.Diff = diff.Compute(orNull(r.cause.Old), orNull(r.cause.New))
	}
	r.cause.Object = admission.Body()
	if body || whole {
		_, err = r.cause.Object.Value()
	}
	return err
}

// serve calls the handlers that the request is for, one after another. Each sees what those before it have remembered.
func (r *reviewing) serve(ctx context.Context, all []*adapters.Handler) error {
	chosen, err := r.choose(ctx, all)
	if err != nil {
		return err
	}
	for _, h := range chosen {
		if err := awaited(ctx); err != nil {
			return err
		}
		a, err := r.attempt(h.Description)
		if err != nil {
			return err
		}
		h.Run(ctx, a)
		a.Call.WorkOn(nil) // it is not needed any more, and may be large
		r.attempts = append(r.attempts, a)
	}
	return nil
}

// attempt makes the call of a handler.
func (r *reviewing) attempt(h *handlers.Handler) (*execution.Attempt, error) {
	admission := r.request.admission
	patch := patching.Patch{Transforms: r.remembered()}
	var given *jsontext.Object
	if len(patch.Transforms) == 0 {
		given = admission.Body()
	}
	var object map[string]any
	if !h.ReadsText || !given.Encoded() {
		var err error
		if object, err = patch.ApplyTo(r.cause.Body()); err != nil {
			return nil, err
		}
	}
	a := execution.New(h, &r.cause, object)
	a.Call.Given, a.Call.Admission, a.Call.Resource, a.Call.Started = given, admission, &r.resource, time.Now().UTC()
	return a, nil
}

// choose gives the handlers that the request is for, in the order of registration; the same function under the same id
// once. An error is that of a filter.
func (r *reviewing) choose(ctx context.Context, all []*adapters.Handler) (chosen []*adapters.Handler, err error) {
	question := execution.Attempt{Call: handlers.Invocation{
		Cause: &r.cause, Admission: r.request.admission, Resource: &r.resource,
	}}
	for _, h := range all {
		if h.HasTwin(chosen) {
			continue
		}
		wanted, err := h.Ask(ctx, &question, execution.Selection)
		if err != nil {
			return nil, err
		}
		if wanted {
			chosen = append(chosen, h)
		}
	}
	return chosen, nil
}

// remembered are the changes of all handlers so far.
func (r *reviewing) remembered() (all []patching.Transform) {
	for _, a := range r.attempts {
		all = append(all, a.Made()...)
	}
	return patching.Contained(all)
}

// orNull keeps a nil mapping a null: in an interface, it would be an object.
func orNull(object map[string]any) any {
	if object == nil {
		return nil
	}
	return object
}
