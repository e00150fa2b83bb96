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

// The two types of objects.
var (
	validatingKind = admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration")
	mutatingKind   = admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration")
)

// NewClient makes a client for webhook configurations: it knows them beforehand, so it never asks the API server what
// it has, nor anybody for a scheme. The transport may be nil.
func NewClient(config *rest.Config, transport *http.Client) (client.WithWatch, error) {
	mapper := meta.NewDefaultRESTMapper(nil)
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
