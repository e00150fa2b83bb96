package reconcilers

import (
	"context"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/controller"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/namespaces"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

// Creations predicts for admission webhooks how an operator will treat an object that is about to be created. If the
// webhook adds the finalizer, the operator does not need a write of its own for it.
type Creations struct {
	options  Options
	handlers map[discovery.Selector][]*adapters.HandlerChain
}

// NewCreations returns the predictions for an operator with these options. It works in any process, whether or not the
// operator runs there.
func (o Options) NewCreations() *Creations {
	own := &Creations{
		options: o.withDefaults(), handlers: map[discovery.Selector][]*adapters.HandlerChain{},
	}
	for _, r := range o.Registrations {
		own.handlers[r.Selector] = append(own.handlers[r.Selector], adapters.New(r.Handler, nil))
	}
	return own
}

// FinalizerTransform returns the transformation that adds the operator's finalizer to a new object in the namespace. It
// returns nil if the operator will not add one for its handlers with this selector, which must match the resource. The
// error is that of a filter: then the decision is left to the operator.
func (c *Creations) FinalizerTransform(
	ctx context.Context, s discovery.Selector, r discovery.Resource, namespace string, body map[string]any,
) (patching.Transform, error) {
	if r.Namespaced && !c.options.servesNamespace(namespace) {
		return nil, nil
	}
	holds, err := controller.HoldsNew(ctx, c.options.Settings, r, c.handlers[s], body)
	if err != nil || !holds {
		return nil, err
	}
	return patching.BlockDeletion(c.options.Finalizer), nil
}

// servesNamespace reports whether the operator serves the namespace, or will do so as soon as it sees it.
func (o Options) servesNamespace(namespace string) bool {
	scope := namespaces.NamespaceRule{Served: o.Namespaces, NamedOnly: o.ScanOnce}
	// Label selectors need the labels of the namespace. Only the live set of matching namespaces reflects them.
	if o.Namespaces.LabelSelector() != nil {
		scope.Live = o.MatchingNamespaces
	}
	return scope.IncludesNamespace(namespace)
}
