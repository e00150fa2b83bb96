package reviews

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/commandline"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/namespaces"
	"github.com/kopf-runtime/kopf-runtime/webhooks/admission"
)

// PrintedReviews are the webhook configurations of a plan, for those who keep them by other means.
type PrintedReviews struct {
	options admission.Options
	own     ReviewSettings
	bundle  []byte
}

// Print returns the webhook configurations of the plan, as they would be managed.
func (r *ReviewServer) Print(plan []reconcilers.Registration, way commandline.Way) (p PrintedReviews, err error) {
	p.own, p.bundle = r.settings, way.Bundle
	if way.Service != "" || way.URL != "" {
		p.own = ReviewSettings{
			Managed: p.own.Managed, Service: way.Service, URL: way.URL, ExcludedNamespaces: p.own.ExcludedNamespaces,
		}
	}
	p.options = r.options(plan)
	p.options.Managed = cmp.Or(p.own.Managed, r.Operator)
	scope := *p.own.scope(r.served, r.asKopf) // of the printed way
	p.options.Scope = func() namespaces.Scope { return scope }
	switch {
	case len(p.options.Registrations) == 0:
		return p, fmt.Errorf("operator %q has no handlers of admission, so there is nothing to print", r.Operator)
	case p.own.Service == "" && p.own.URL == "":
		return p, errors.New("it is not known where the API server will find the operator: say so by --service " +
			"or --url")
	}
	return p, errors.Join(p.own.Check()...)
}

// Objects returns the configurations for the resources of the cluster, and hints for the user.
func (p PrintedReviews) Objects(
	ctx context.Context, cluster *rest.Config,
) (objects []client.Object, hints []string, err error) {
	options := p.options
	options.Config = cluster
	if options.HTTPClient, err = rest.HTTPClientFor(cluster); err != nil {
		return nil, nil, fmt.Errorf("making a client for the cluster: %w", err)
	}
	objects, absent, err := options.Objects(ctx, p.own.reach(options.Path)(p.bundle))
	if err != nil {
		return nil, nil, fmt.Errorf("printing the webhook configurations of operator %q: %w", options.Operator, err)
	}
	for _, id := range absent {
		hints = append(hints, fmt.Sprintf("The handler %q has no rules: the cluster does not have its resources. "+
			"Install the CRDs, and print again.", id))
	}
	if len(p.bundle) == 0 {
		hints = append(hints, "There is no caBundle: without one, such as that of cert-manager's injector, the API "+
			"server trusts nobody but the CAs of its system. See --ca-file.")
	}
	return objects, hints, nil
}
