package memapi

import (
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Config is a configuration for clients of the transport: the server itself, a [Connection], or what is put before
// either.
func Config(transport http.RoundTripper) *rest.Config {
	return &rest.Config{
		Host: "http://mem", Transport: transport, QPS: -1,
		ContentConfig: rest.ContentConfig{
			ContentType: runtime.ContentTypeJSON, AcceptContentTypes: runtime.ContentTypeJSON,
		},
	}
}

// NewClient makes a client of the transport for unstructured objects of these resources. It knows them beforehand, so
// it never asks the server for anything but objects.
func NewClient(transport http.RoundTripper, resources ...Resource) (client.Client, error) {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, r := range resources {
		scope := meta.RESTScopeRoot
		if r.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		name := r.GroupVersionResource()
		mapper.AddSpecific(r.groupVersion().WithKind(r.Kind), name, name, scope)
	}
	return client.New(Config(transport), client.Options{Scheme: runtime.NewScheme(), Mapper: mapper})
}
