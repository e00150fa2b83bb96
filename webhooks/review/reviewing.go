package review

import (
	"context"
	"slices"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// reviewing is one review that is being served.
type reviewing struct {
	request  *request
	resource discovery.Resource
	attempts []*execution.Attempt // in the order of the calls
}

// serve calls the handlers that the request is for, one after another. Each sees what those before it have remembered.
func (r *reviewing) serve(ctx context.Context, all []*adapters.Handler) error {
	admission := r.request.admission
	c := &cause.Cause{
		Body: r.request.body(), Old: admission.Old, New: admission.Object,
		Diff: diff.Compute(orNull(admission.Old), orNull(admission.Object)),
	}
	chosen, err := r.choose(ctx, all, c)
	if err != nil {
		return err
	}
	for _, h := range chosen {
		patch := patching.Patch{Transforms: r.remembered()}
		if len(patch.Transforms) > 0 {
			admission.ObjectJSON = nil
		}
		object, err := patch.ApplyTo(c.Body)
		if err != nil {
			return err
		}
		a := execution.New(h.Description, c, object)
		a.Call.Admission, a.Call.Resource, a.Call.Started = admission, &r.resource, time.Now().UTC()
		h.Run(ctx, a)
		r.attempts = append(r.attempts, a)
	}
	return nil
}

// choose gives the handlers that the request is for, in the order of registration; the same function under the same id
// once. An error is that of a filter.
func (r *reviewing) choose(
	ctx context.Context, all []*adapters.Handler, c *cause.Cause,
) (chosen []*adapters.Handler, err error) {
	question := execution.Attempt{Call: handlers.Call{
		Cause: c, Admission: r.request.admission, Resource: &r.resource,
	}}
	for _, h := range all {
		repeats := func(other *adapters.Handler) bool { return h.Description.Repeats(other.Description) }
		if slices.ContainsFunc(chosen, repeats) {
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
