package admission

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/webhooks/configurations"
)

// ConfigurationObjects returns the webhook configurations as they would be managed, for users who apply them by other
// means. The rules are for the given resources of the cluster. An entry without any of them has no rules.
func (o Options) ConfigurationObjects(
	served []discovery.Resource, server admissionregistrationv1.WebhookClientConfig,
) ([]client.Object, error) {
	hooks := o.configurationHooks(*o.selectResources(served, &resources{}, nil))
	return configurations.ConfigurationObjects(o.Managed, hooks, server, o.entryForm())
}
