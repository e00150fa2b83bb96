package controller

import (
	"context"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/settings"
)

// HoldsNew reports whether an object that is about to be created will get the finalizer for any of the handlers. They
// are asked as they will be then. An error is that of a filter, or of a storage.
func HoldsNew(
	ctx context.Context, s settings.Settings, r discovery.Resource, own []*adapters.Handler, body map[string]any,
) (bool, error) {
	now, err := lensOf(s, r, own).New(body)
	if err != nil {
		return false, err
	}
	c := cause.Detect(cause.Observation{Body: body, Finalizer: s.Finalizer, New: now})
	return adapters.Holds(ctx, adapters.ByFamily(own), c)
}
