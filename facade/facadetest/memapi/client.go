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

// Config returns a client configuration that uses the transport: a server, a [Connection], or a transport that wraps
// one of them. Client-side rate limiting is off.
func Config(transport http.RoundTripper) *rest.Config {
	return &rest.Config{
		// The host is never resolved, because the transport does not open connections.
		Host: "http://mem", Transport: transport, QPS: -1,
		ContentConfig: rest.ContentConfig{
			ContentType: runtime.ContentTypeJSON, AcceptContentTypes: runtime.ContentTypeJSON,
		},
	}
}

// findServer is the context key of requests that only look up the server that receives them.
type findServer struct{}

// findTimeout limits [ServerOf], because a transport to a real server may never answer.
const findTimeout = 5 * time.Second

// ServerOf returns the server that receives the requests of the transport, also through a [Connection] or through other
// transports that keep the context of requests. It returns nil if that server is not in memory, or if the transport
// does not answer within five seconds.
func ServerOf(transport http.RoundTripper) (found *Server) {
	// The context carries a pointer, through which the server that serves the request returns itself.
	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), findServer{}, &found), findTimeout)
	defer cancel()
	// Any path would do; this one exists on every server.
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://mem/version", nil)
	if err != nil {
		return nil
	}
	if response, err := transport.RoundTrip(r); err == nil {
		_ = response.Body.Close()
	}
	return found
}

// NewClient returns a client of the transport for unstructured objects of these resources. It maps kinds to resources
// without discovery, so each of its requests is for objects.
func NewClient(transport http.RoundTripper, resources ...Resource) (client.Client, error) {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, r := range resources {
		scope := meta.RESTScopeRoot
		if r.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		// Adding a specific mapping avoids that the mapper guesses the plural.
		name := r.GroupVersionResource()
		mapper.AddSpecific(r.groupVersion().WithKind(r.Kind), name, name, scope)
	}
	return client.New(Config(transport), client.Options{Scheme: runtime.NewScheme(), Mapper: mapper})
}
