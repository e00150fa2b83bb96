package reconcilers

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/controller"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/orchestration"
)

// PreviewSource provides the objects of a cluster for previews.
type PreviewSource interface {
	discovery.Getter
	// ListObjects calls visit for each object of a resource in the namespace, or in all if it is empty. The labels are
	// a selector; empty selects all. An error of visit ends the list.
	ListObjects(
		ctx context.Context, r discovery.Resource, namespace, labels string, visit func(body map[string]any) error,
	) error
}

// ObjectPreview is what an operator would do first for one object when it starts.
type ObjectPreview = controller.ObjectPreview

// PreviewedKind is a resource that the operator would serve, with the handlers for its objects.
type PreviewedKind struct {
	Resource discovery.Resource
	// Changing, Background and Watching are the handlers of changes, daemons and timers, and those of raw events.
	Changing, Background, Watching []*handlers.Handler

	preview *controller.KindPreview
}

// PreviewVisitor receives the previews of an operator.
type PreviewVisitor interface {
	// VisitKind is called for each resource that the operator would serve, before all objects.
	VisitKind(of PreviewedKind)
	// VisitObject is called for each object. The body is shared and must not be modified.
	VisitObject(of PreviewedKind, body map[string]any, found ObjectPreview)
}

// PreviewObjects predicts the first pass over each object that an operator with these options would serve. It only
// reads from the source. It calls filters and index functions, and no other functions of handlers. It returns the
// reasons why selectors of handlers have no resource.
func (o Options) PreviewObjects(
	ctx context.Context, source PreviewSource, visitor PreviewVisitor,
) (unserved []string, err error) {
	o = o.withDefaults()
	registered := reconcilersOf(o.Registrations, nil)
	assigned, unserved, err := orchestration.ResolveAssignments(ctx, registered, source)
	if err != nil {
		return nil, err
	}
	served, err := o.listServedNamespaces(ctx, source)
	if err != nil {
		return nil, err
	}
	deps := &controller.Dependencies{
		Settings: o.Settings, Dependents: o.Dependents, Log: logf.FromContext(ctx),
		Journal: controller.PreviewJournal(),
	}
	var kinds []PreviewedKind
	for _, a := range assigned {
		if err := checkIDs(a); err != nil {
			return nil, err
		}
		families := adapters.ByFamily(a.Handlers)
		of := PreviewedKind{
			Resource: a.Resource, Changing: adapters.DescriptionsOf(families.Changing),
			Background: adapters.DescriptionsOf(families.Background),
			Watching:   adapters.DescriptionsOf(families.Watching),
			preview:    controller.NewKindPreview(deps, a.Resource, a.Handlers),
		}
		visitor.VisitKind(of)
		kinds = append(kinds, of)
	}
	return unserved, o.previewKinds(ctx, source, kinds, served, visitor)
}

// previewKinds fills the indices first, and then predicts the passes over all objects.
func (o Options) previewKinds(
	ctx context.Context, source PreviewSource, kinds []PreviewedKind, served []string, visitor PreviewVisitor,
) error {
	for _, of := range kinds {
		if !of.preview.HasIndices() {
			continue
		}
		if err := of.listObjects(ctx, source, served, of.preview.IndexObject); err != nil {
			return err
		}
	}
	for _, of := range kinds {
		if !of.preview.HandlesObjects() {
			continue // only indexed, or watched for its owners
		}
		err := of.listObjects(ctx, source, served, func(body map[string]any) error {
			visitor.VisitObject(of, body, of.preview.PreviewObject(ctx, body))
			if o.OnGone != nil {
				o.OnGone((&unstructured.Unstructured{Object: body}).GetUID())
			}
			return ctx.Err()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// listObjects calls visit for each object of the kind in the served namespaces.
func (k PreviewedKind) listObjects(
	ctx context.Context, source PreviewSource, served []string, visit func(body map[string]any) error,
) error {
	if !k.Resource.Namespaced {
		served = []string{namespaces.Everywhere}
	}
	for _, namespace := range served {
		if err := source.ListObjects(ctx, k.Resource, namespace, "", visit); err != nil {
			return fmt.Errorf("listing %s: %w", k.Resource.GroupResource(), err)
		}
	}
	return nil
}

// listServedNamespaces returns the namespaces that the operator would serve. Only patterns and labels need a list.
func (o Options) listServedNamespaces(ctx context.Context, source PreviewSource) ([]string, error) {
	names, plain := o.Namespaces.PlainNames()
	switch {
	case len(o.Namespaces) == 0:
		return []string{namespaces.Everywhere}, nil
	case plain:
		return names, nil
	case o.ScanOnce:
		return o.Namespaces.ExactNames(), nil
	}
	labels := ""
	if selector := o.Namespaces.LabelSelector(); selector != nil {
		labels = selector.String()
	}
	served := namespaces.NewServed(o.Namespaces...)
	err := source.ListObjects(ctx, discovery.Resource{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Plural: "namespaces",
	}, namespaces.Everywhere, labels, func(body map[string]any) error {
		served.ApplyEvent(watch.Added, body)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing namespaces: %w", err)
	}
	return served.Names(), nil
}

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
