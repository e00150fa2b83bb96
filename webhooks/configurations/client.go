package configurations

import (
	"net/http"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The two kinds of webhook configurations. An operator has an object of each, with the same name.
var (
	validatingKind = admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration")
	mutatingKind   = admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration")
)

// NewClient returns a client for webhook configurations. Both kinds are known in advance, so it needs neither discovery
// nor a scheme. The transport may be nil.
func NewClient(config *rest.Config, transport *http.Client) (client.WithWatch, error) {
	mapper := meta.NewDefaultRESTMapper(nil)
	// The plural names cannot be derived without discovery.
	for plural, kind := range map[string]schema.GroupVersionKind{
		"validatingwebhookconfigurations": validatingKind, "mutatingwebhookconfigurations": mutatingKind,
	} {
		resource := kind.GroupVersion().WithResource(plural)
		mapper.AddSpecific(kind, resource, resource, meta.RESTScopeRoot)
	}
	return client.NewWithWatch(config, client.Options{
		HTTPClient: transport, Scheme: runtime.NewScheme(), Mapper: mapper,
	})
}
