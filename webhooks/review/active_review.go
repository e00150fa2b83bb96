package review

import (
	"context"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// activeReview is the state of one review.
type activeReview struct {
	request  *request
	resource discovery.Resource
	// cause contains the object as filters and handlers see it. Its old and new states are whole objects, not essences
	// as for changes.
	cause    cause.Cause
	attempts []*execution.Attempt // in the order of the calls
}

// decodeObjects decodes the objects as far as the handlers need them. Decoding is the most expensive step of a review.
func (r *activeReview) decodeObjects(all []*adapters.HandlerChain) (err error) {
	admission := r.request.admission
	// whole is true if a handler needs both objects and their difference; body is true if a filter needs the object.
	body, whole := false, false
	for _, h := range all {
		d := h.Description
		// Handlers that read the text decode it themselves, into their own types.
		whole = whole || !d.ReadsText
		body = body || d.AcceptsRequest(admission) && (d.Field != nil || len(d.Filters) > 0)
	}
	if whole {
		if r.cause.New, err = admission.Object.Value(); err != nil {
			return err
		}
		if r.cause.Old, err = admission.Old.Value(); err != nil {
			return err
		}
		r.cause.Diff = diff.Compute(nullIfNil(r.cause.Old), nullIfNil(r.cause.New))
	}
	// Filters apply to the new object or, for a deletion, to the old one.
	r.cause.Object = admission.ReviewedObject()
	if body || whole {
		_, err = r.cause.Object.Value()
	}
	return err
}

// callHandlers calls the handlers of the request, one after another. Each handler sees the changes of the former ones.
func (r *activeReview) callHandlers(ctx context.Context, all []*adapters.HandlerChain) error {
	// All filters are evaluated first, with the original object.
	chosen, err := r.chooseHandlers(ctx, all)
	if err != nil {
		return err
	}
	for _, h := range chosen {
		// Handlers can be slow, so the client may have disconnected during an earlier one.
		if err := checkStillAwaited(ctx); err != nil {
			return err
		}
		a, err := r.newAttempt(h.Description)
		if err != nil {
			return err
		}
		h.RunAttempt(ctx, a)
		a.Call.SetWorkingCopy(nil) // frees the working copy, which may be large
		r.attempts = append(r.attempts, a)
	}
	return nil
}

// newAttempt prepares the call of a handler, with the object as the earlier handlers have changed it.
func (r *activeReview) newAttempt(h *handlers.Handler) (*execution.Attempt, error) {
	admission := r.request.admission
	patch := patching.Patch{Transforms: r.rememberedChanges()}
	var given *jsontext.LazyObject
	// Without earlier changes, a handler can decode the text of the request by itself.
	if len(patch.Transforms) == 0 {
		given = admission.ReviewedObject()
	}
	var object map[string]any
	// Otherwise, the handler gets a decoded copy with the changes applied.
	if !h.ReadsText || !given.IsEncoded() {
		var err error
		if object, err = patch.ApplyTo(r.cause.Body()); err != nil {
			return nil, err
		}
	}
	// There are no retries, so the attempt has no record.
	a := execution.NewAttempt(h, &r.cause, object)
	a.Call.EncodedObject, a.Call.Admission, a.Call.Resource, a.Call.Started = given, admission, &r.resource,
		time.Now().UTC()
	return a, nil
}

// chooseHandlers returns the handlers of the request, in the order of registration. If a function is registered several
// times under one id, it is returned once. An error comes from a filter.
func (r *activeReview) chooseHandlers(
	ctx context.Context, all []*adapters.HandlerChain,
) (chosen []*adapters.HandlerChain, err error) {
	// The filters of all handlers see the same call.
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

// rememberedChanges returns the changes of all handlers that were called so far.
func (r *activeReview) rememberedChanges() (all []patching.Transform) {
	for _, a := range r.attempts {
		all = append(all, a.AllTransforms()...)
	}
	return patching.ContainPanics(all)
}

// nullIfNil returns nil for a nil mapping. In an interface, a nil mapping would be an empty object.
func nullIfNil(object map[string]any) any {
	if object == nil {
		return nil
	}
	return object
}
