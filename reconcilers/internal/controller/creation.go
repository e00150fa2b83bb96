package controller

import (
	"context"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
)

// HoldsNew reports whether an object that is about to be created needs the finalizer for any of the handlers. It
// evaluates the filters of the handlers as the first pass will. It returns the error of a filter or of a storage.
func HoldsNew(
	ctx context.Context, s kind.Settings, r discovery.Resource, own []*adapters.HandlerChain, body map[string]any,
) (bool, error) {
	now, err := lensOf(s, r, own).New(body)
	if err != nil {
		return false, err
	}
	c := cause.Detect(cause.Observation{Body: body, Finalizer: s.Finalizer, New: now})
	return adapters.AnyHolds(ctx, adapters.ByFamily(own), c)
}
