package reconcilers

import (
	"context"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/controller"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/namespaces"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

// Creations tell what an operator will do first of all with objects that are about to be created.
type Creations struct {
	options  Options
	handlers map[discovery.Selector][]*adapters.Handler
}

// Creations are those of an operator with these options, wherever it runs, and whether or not it does at present.
func (o Options) Creations() *Creations {
	own := &Creations{
		options: o.resolved(), handlers: map[discovery.Selector][]*adapters.Handler{},
	}
	for _, r := range o.Registrations {
		own.handlers[r.Selector] = append(own.handlers[r.Selector], adapters.New(r.Handler, nil))
	}
	return own
}

// Hold gives what adds the finalizer of the operator to a new object in the namespace, if that is what the operator
// will do for its handlers with that selector, which matches the resource; nil if it will not. An error is that of a
// filter: then the object will have to wait.
func (c *Creations) Hold(
	ctx context.Context, s discovery.Selector, r discovery.Resource, namespace string, body map[string]any,
) (patching.Transform, error) {
	if r.Namespaced && !c.options.serves(namespace) {
		return nil, nil
	}
	holds, err := controller.HoldsNew(ctx, c.options.Settings, r, c.handlers[s], body)
	if err != nil || !holds {
		return nil, err
	}
	return patching.BlockDeletion(c.options.Finalizer), nil
}

// serves tells whether objects in the namespace are served, or will be as soon as it is seen.
func (o Options) serves(namespace string) bool {
	scope := namespaces.Scope{Served: o.Namespaces, NamedOnly: o.ScanOnce}
	if o.Namespaces.Labels() != nil {
		scope.Live = o.Matching
	}
	return scope.Has(namespace)
}
