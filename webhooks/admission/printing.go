package admission

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/webhooks/configurations"
)

// Objects are the webhook configurations as they would be managed, for those who keep them by other means. It asks the
// API server for the resources that there are now; absent are the handlers that it has none for, whose entries have no
// rules.
func (o Options) Objects(
	ctx context.Context, server admissionregistrationv1.WebhookClientConfig,
) (objects []client.Object, absent []string, err error) {
	o.ScanOnce = true
	a := &Admission{options: o}
	if err := a.connect(); err != nil {
		return nil, nil, err
	}
	found, err := a.scan(ctx, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("finding the resources that webhooks are for: %w", err)
	}
	hooks := o.hooks(*found)
	for _, hook := range hooks {
		if len(hook.Resources) == 0 {
			absent = append(absent, hook.ID)
		}
	}
	objects, err = configurations.Objects(o.Managed, hooks, server, o.form())
	return objects, absent, err
}
