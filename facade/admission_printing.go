package kopf

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/commandline"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/namespaces"
	"github.com/kopf-runtime/kopf-runtime/webhooks/admission"
)

// webhooks are the webhook configurations as they would be managed, for those who keep them by other means.
func (op *Operator) webhooks(
	ctx context.Context, cluster *rest.Config, way commandline.Way,
) (objects []client.Object, hints []string, err error) {
	options, reach, err := op.printable(way)
	if err != nil {
		return nil, nil, err
	}
	options.Config = cluster
	if options.HTTPClient, err = rest.HTTPClientFor(cluster); err != nil {
		return nil, nil, fmt.Errorf("making a client for the cluster: %w", err)
	}
	objects, absent, err := options.Objects(ctx, reach.reach(options.Path)(way.Bundle))
	if err != nil {
		return nil, nil, fmt.Errorf("printing the webhook configurations of operator %q: %w", op.name, err)
	}
	for _, id := range absent {
		hints = append(hints, fmt.Sprintf("The handler %q has no rules: the cluster does not have its resources. "+
			"Install the CRDs, and print again.", id))
	}
	if len(way.Bundle) == 0 {
		hints = append(hints, "There is no caBundle: without one, such as that of cert-manager's injector, the API "+
			"server trusts nobody but the CAs of its system. See --ca-file.")
	}
	return objects, hints, nil
}

// printable is what the configurations are made of, and by which way.
func (op *Operator) printable(way commandline.Way) (o admission.Options, own AdmissionSettings, err error) {
	op.registry.Lock()
	defer op.registry.Unlock()
	_, plan, err := op.planAlone()
	if err != nil {
		return o, own, err
	}
	own = op.settings.values.Admission
	if way.Service != "" || way.URL != "" {
		own = AdmissionSettings{
			Managed: own.Managed, Service: way.Service, URL: way.URL, ExcludedNamespaces: own.ExcludedNamespaces,
		}
	}
	o = op.admissionOptions(plan)
	o.Managed = cmp.Or(own.Managed, op.name)
	scope := *op.settings.values.judged(&own) // of the printed way
	o.Scope = func() namespaces.Scope { return scope }
	switch {
	case len(o.Registrations) == 0:
		return o, own, fmt.Errorf("operator %q has no handlers of admission, so there is nothing to print", op.name)
	case own.Service == "" && own.URL == "":
		return o, own, errors.New("it is not known where the API server will find the operator: say so by --service " +
			"or --url")
	}
	return o, own, errors.Join(own.check()...)
}
