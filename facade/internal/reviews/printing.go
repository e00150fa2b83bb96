package reviews

import (
	"cmp"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/manifests"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/webhooks/admission"
)

// PrintedReviews contains the webhook configurations of a plan, for users who apply them by other means.
type PrintedReviews struct {
	// Service leads to the operator, and ServicePort is its port; the name is empty for a URL.
	Service     types.NamespacedName
	ServicePort int32

	options  admission.Options
	settings ReviewSettings
	bundle   []byte
}

// PrintConfigurations returns the webhook configurations of the plan, as the operator would manage them. It returns an
// error if the address of the operator is unknown, unless the operator manages them itself.
func (r *ReviewServer) PrintConfigurations(
	plan []reconcilers.Registration, address manifests.Address,
) (p PrintedReviews, err error) {
	p.settings, p.bundle = r.settings, address.Bundle
	// The flags replace the address of the settings, so those must not be checked together.
	if address.Service != "" || address.URL != "" {
		p.settings = ReviewSettings{
			Managed: p.settings.Managed, Service: address.Service, URL: address.URL,
			ExcludedNamespaces: p.settings.ExcludedNamespaces,
		}
	}
	p.options = r.planOptions(plan)
	// Printed configurations need names even if the operator does not manage them.
	p.options.Managed = cmp.Or(p.settings.Managed, r.operator)
	// A Service of the flags changes the excluded namespace.
	scope := *p.settings.reviewedNamespaces(r.servedNamespaces, r.asKopf)
	p.options.ReviewedNamespaces = func() namespaces.NamespaceRule { return scope }
	hasAddress := p.settings.Managed != "" || p.settings.Service != "" || p.settings.URL != ""
	if len(p.options.Registrations) > 0 && !hasAddress {
		return p, errors.New("it is not known where the API server will find the operator: set Admission.Service, or " +
			"give --service or --url")
	}
	p.Service, p.ServicePort, _ = p.settings.parseService() // the following checks return the error
	// The other checks are those of a running operator. Only invalid fields matter here.
	return p, errors.Join(p.settings.CheckFields()...)
}

// ConfigurationObjects returns the configurations for the given resources of the cluster, and hints for the user. If
// the operator manages the configurations itself, only a hint is returned.
func (p PrintedReviews) ConfigurationObjects(
	served []discovery.Resource,
) (objects []client.Object, hints []string, err error) {
	if len(p.options.Registrations) == 0 {
		return nil, nil, nil
	}
	if p.settings.Managed != "" {
		return nil, []string{fmt.Sprintf("There are no webhook configurations here: the operator keeps them itself, "+
			"under the name %q. See Admission.Managed.", p.settings.Managed)}, nil
	}
	objects, err = p.options.ConfigurationObjects(served, p.settings.clientConfigBuilder(p.options.Path)(p.bundle))
	if err != nil {
		return nil, nil, fmt.Errorf("printing the webhook configurations of operator %q: %w", p.options.Operator, err)
	}
	if len(p.bundle) == 0 {
		// A bundle can also be injected later, so its absence is only a hint.
		hints = append(hints, "There is no caBundle: without one, such as that of cert-manager's injector, the API "+
			"server trusts only the CAs of its system. See --ca-file and --cert-manager.")
	}
	return objects, hints, nil
}
