package admission

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/webhooks/configurations"
)

// ConfigurationObjects returns the webhook configurations as they would be managed, for users who apply them by other
// means. It calls the API server to find the current resources. absent contains the ids of handlers without resources,
// whose entries have no rules.
func (o Options) ConfigurationObjects(
	ctx context.Context, server admissionregistrationv1.WebhookClientConfig,
) (objects []client.Object, absent []string, err error) {
	// No CRDs are watched for one scan.
	o.ScanOnce = true
	a := &WebhookServer{options: o}
	if err := a.createClients(); err != nil {
		return nil, nil, err
	}
	found, err := a.scanResources(ctx, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("finding the resources that webhooks are for: %w", err)
	}
	hooks := o.configurationHooks(*found)
	// These ids become hints for the user.
	for _, hook := range hooks {
		if len(hook.Resources) == 0 {
			absent = append(absent, hook.ID)
		}
	}
	objects, err = configurations.ConfigurationObjects(o.Managed, hooks, server, o.entryForm())
	return objects, absent, err
}
