package reviews

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// finalizerID is the id of the mutating handlers that set the finalizer, one for each selection.
const finalizerID = "finalizer"

// Learn takes over the work of the engine on new objects, again after a change by the startup.
func (r *ReviewServer) Learn(creations *reconcilers.Creations) { r.creations.Store(creations) }

// SetsFinalizers returns a mutating handler of the operator's own for each selection whose objects are to be held on
// their deletion. With it, the object is stored with the finalizer already, which would be a write of its own.
func (r *ReviewServer) SetsFinalizers(all []registry.ResolvedEntry) (more []registry.ResolvedEntry) {
	if !r.settings.FinalizerOnCreate {
		return nil
	}
	for _, one := range all {
		known := func(other registry.ResolvedEntry) bool { return other.Selector == one.Selector }
		if one.Handler.Holds() && !slices.ContainsFunc(more, known) {
			more = append(more, r.setsFinalizer(one, all))
		}
	}
	return more
}

// setsFinalizer is the handler of one selection. It only blocks requests for objects that need the finalizer.
func (r *ReviewServer) setsFinalizer(one registry.ResolvedEntry, all []registry.ResolvedEntry) registry.ResolvedEntry {
	selector := one.Selector
	h := &handlers.Handler{
		ID: finalizerID, Family: handlers.Admitting, Mutating: true, Operations: []string{"CREATE"},
		IgnoreFailures: true, Sparing: true, ReadsText: true, Labels: commonLabels(selector, all),
		Location: r.location,
	}
	h.Call = func(ctx context.Context, call *handlers.Invocation) error {
		return r.setFinalizer(ctx, selector, call)
	}
	return registry.ResolvedEntry{
		HandlerEntry: registry.HandlerEntry{Kind: one.Kind, Verb: "Mutate", Handler: h}, Selector: selector,
	}
}

// setFinalizer adds the finalizer to an object that is about to be created, if the engine would. It denies nothing.
func (r *ReviewServer) setFinalizer(ctx context.Context, of discovery.Selector, call *handlers.Invocation) error {
	known := r.creations.Load()
	if known == nil {
		return nil
	}
	object, err := call.Working()
	if err != nil {
		return err
	}
	hold, err := known.Hold(ctx, of, *call.Resource, call.Admission.Namespace, object)
	if err != nil {
		logf.FromContext(ctx).V(1).Info("Cannot decide whether a created object needs the finalizer; "+
			"not setting it now", "error", err.Error())
		return nil
	}
	if hold == nil {
		return nil
	}
	return call.Writes.Remember(hold)
}

// commonLabels are what all handlers for which objects are held demand of the labels, if it is the same; nil is
// nothing.
func commonLabels(of discovery.Selector, all []registry.ResolvedEntry) (common labels.Selector) {
	first := true
	for _, one := range all {
		own := one.Handler.Labels
		switch {
		case one.Selector != of || !one.Handler.Holds():
		case own == nil:
			return nil
		case first:
			common, first = own, false
		case common.String() != own.String():
			return nil
		}
	}
	return common
}
