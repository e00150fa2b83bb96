package memapi

import (
	"context"
	"net/http"
	"time"

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

// findServer is the key of the context of a request that only asks which server it arrives at.
type findServer struct{}

// findTimeout is for transports to real servers, which may not answer.
const findTimeout = 5 * time.Second

// ServerOf returns the server that requests of the transport arrive at, also through a [Connection] or other transports
// that keep the context of requests. It returns nil if that is not a server in memory, or if the transport does not
// answer within five seconds.
func ServerOf(transport http.RoundTripper) (found *Server) {
	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), findServer{}, &found), findTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://mem/version", nil)
	if err != nil {
		return nil
	}
	if response, err := transport.RoundTrip(r); err == nil {
		_ = response.Body.Close()
	}
	return found
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
