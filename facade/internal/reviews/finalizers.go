package reviews

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// finalizerID is the id of the mutating handlers that set the finalizer. There is one for each selection.
const finalizerID = "finalizer"

// SetCreations sets the part of the engine that decides about finalizers of new objects. The startup can change the
// settings, so it is called again after it, while reviews are served.
func (r *ReviewServer) SetCreations(creations *reconcilers.Creations) { r.creations.Store(creations) }

// FinalizerHandlers returns a mutating handler for each selection whose objects need the operator's finalizer. The API
// server then stores new objects with the finalizer, which saves the engine a separate write for each.
func (r *ReviewServer) FinalizerHandlers(all []registry.ResolvedEntry) (more []registry.ResolvedEntry) {
	if !r.settings.FinalizerOnCreate {
		return nil
	}
	for _, one := range all {
		// Several handlers of one selection share the finalizer.
		known := func(other registry.ResolvedEntry) bool { return other.Selector == one.Selector }
		// Handlers that do not delay a deletion need no finalizer.
		if one.Handler.NeedsFinalizer() && !slices.ContainsFunc(more, known) {
			more = append(more, r.newFinalizerHandler(one, all))
		}
	}
	return more
}

// newFinalizerHandler returns the handler of one selection. It only blocks requests for objects that need the
// finalizer.
func (r *ReviewServer) newFinalizerHandler(
	one registry.ResolvedEntry, all []registry.ResolvedEntry,
) registry.ResolvedEntry {
	selector := one.Selector
	h := &handlers.Handler{
		// The handler is an optimization: if it fails, the engine adds the finalizer later, so failures are ignored.
		// Sparing limits it to resources that the engine handles, with a short timeout.
		ID: finalizerID, Family: handlers.Admitting, Mutating: true, Operations: []string{"CREATE"},
		IgnoreFailures: true, IsOptimization: true, ReadsText: true, Labels: commonLabelSelector(selector, all),
		Location: r.location,
	}
	h.Call = func(ctx context.Context, call *handlers.Invocation) error {
		return r.addFinalizerOnCreate(ctx, selector, call)
	}
	return registry.ResolvedEntry{
		HandlerEntry: registry.HandlerEntry{Kind: one.Kind, Verb: "Mutate", Handler: h}, Selector: selector,
	}
}

// addFinalizerOnCreate adds the finalizer to an object that is being created, if the engine would add it. It never
// denies a request.
func (r *ReviewServer) addFinalizerOnCreate(
	ctx context.Context, of discovery.Selector, call *handlers.Invocation,
) error {
	known := r.creations.Load()
	// The operator is not set up yet.
	if known == nil {
		return nil
	}
	// Earlier mutating handlers may have changed the object, so the filters see their result.
	object, err := call.WorkingCopy()
	if err != nil {
		return err
	}
	hold, err := known.FinalizerTransform(ctx, of, *call.Resource, call.Admission.Namespace, object)
	// A filter has failed. The engine calls it again when it handles the object, and then reports the error.
	if err != nil {
		logf.FromContext(ctx).V(1).Info("Cannot decide whether a created object needs the finalizer; "+
			"not setting it now", "error", err.Error())
		return nil
	}
	if hold == nil {
		return nil
	}
	// The response contains this change as a part of the patch.
	return call.Writer.AddTransform(hold)
}

// commonLabelSelector returns the label selector that all handlers with a finalizer of the selection share, or nil. It
// becomes the objectSelector of the webhook, which may only exclude objects that no handler selects.
func commonLabelSelector(of discovery.Selector, all []registry.ResolvedEntry) (common labels.Selector) {
	first := true
	for _, one := range all {
		own := one.Handler.Labels
		switch {
		case one.Selector != of || !one.Handler.NeedsFinalizer():
		case own == nil:
			// A handler without labels selects all objects.
			return nil
		case first:
			// Selectors are compared by their texts, which are sorted by key.
			common, first = own, false
		case common.String() != own.String():
			// An objectSelector cannot express alternatives.
			return nil
		}
	}
	return common
}
