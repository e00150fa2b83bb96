package controller

import (
	"context"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
)

// HoldsNew tells whether an object that is about to be created gets the finalizer, as soon as it is there, for any of
// the handlers. They are asked as they will be then. An error is that of a filter, or of a storage.
func (s Settings) HoldsNew(
	ctx context.Context, r discovery.Resource, own []*adapters.Handler, body map[string]any,
) (bool, error) {
	now, err := s.lens(r, own).New(body)
	if err != nil {
		return false, err
	}
	c := cause.Detect(cause.Observation{Body: body, Finalizer: s.Finalizer, New: now})
	return adapters.Holds(ctx, adapters.ByFamily(own), c)
}
