package facadetest

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var errNoClient = errors.New("facadetest: the handler uses its client, and the test has given none: pass " +
	"facadetest.Client(fake.NewClientBuilder().Build()), or another client, to the constructor")

// missingClient takes the place of a client that the test has not passed, and fails all requests. It also records the
// attempt, because handlers may discard the error.
type missingClient struct{ isUsed atomic.Bool }

// newClient returns a client with the scheme. The interceptor rejects requests, and the mapper and the transport reject
// all remaining uses, such as discovery.
func (n *missingClient) newClient(scheme *runtime.Scheme) client.Client {
	unmapped := meta.NewLazyRESTMapperLoader(func() (meta.RESTMapper, error) { return nil, n.refuseRequest() })
	refusing, err := client.NewWithWatch(
		// The host is never contacted, because the transport rejects each request.
		&rest.Config{Host: "http://none", Transport: n}, client.Options{Scheme: scheme, Mapper: unmapped},
	)
	if err != nil {
		panicMisuse("making a client: %v", err)
	}
	return interceptor.NewClient(refusing, n.interceptorFuncs())
}

// RoundTrip rejects requests that the interceptor does not cover.
func (n *missingClient) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, n.refuseRequest()
}

// refuseRequest records the use of the client and returns the error.
func (n *missingClient) refuseRequest() error {
	n.isUsed.Store(true)
	return errNoClient
}

// usageError returns the error for the test if the client was used, else nil.
func (n *missingClient) usageError() error {
	if !n.isUsed.Load() {
		return nil
	}
	return errNoClient
}

// interceptorFuncs returns interceptors that fail all requests. They run before the client looks up the kind of the
// object: for a kind that is not in the scheme, the test would otherwise get an error about the scheme.
func (n *missingClient) interceptorFuncs() interceptor.Funcs {
	type (
		ctx  = context.Context
		with = client.WithWatch
	)
	return interceptor.Funcs{
		Get: func(ctx, with, client.ObjectKey, client.Object, ...client.GetOption) error {
			return n.refuseRequest()
		},
		List:        func(ctx, with, client.ObjectList, ...client.ListOption) error { return n.refuseRequest() },
		Create:      func(ctx, with, client.Object, ...client.CreateOption) error { return n.refuseRequest() },
		Delete:      func(ctx, with, client.Object, ...client.DeleteOption) error { return n.refuseRequest() },
		DeleteAllOf: func(ctx, with, client.Object, ...client.DeleteAllOfOption) error { return n.refuseRequest() },
		Update:      func(ctx, with, client.Object, ...client.UpdateOption) error { return n.refuseRequest() },
		Patch: func(ctx, with, client.Object, client.Patch, ...client.PatchOption) error {
			return n.refuseRequest()
		},
		Apply: func(ctx, with, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return n.refuseRequest()
		},
		// The transport refuses the requests for subresources. Their kinds may be missing in the scheme, so the use is
		// recorded before.
		SubResource: func(inner client.WithWatch, name string) client.SubResourceClient {
			n.isUsed.Store(true)
			return inner.SubResource(name)
		},
	}
}

// schemeMappedClient is a client that also maps the kinds of its scheme. The mapper of controller-runtime's fake client
// only maps kinds that were added to it, so it cannot report whether other kinds are namespaced.
type schemeMappedClient struct {
	client.Client

	mapper meta.RESTMapper
}

// withSchemeMapper returns the client with a mapper for all kinds of its scheme.
func withSchemeMapper(c client.Client) client.Client {
	// The mapper is built on first use: that takes a while for a scheme with all kinds of Kubernetes, and only Ensure
	// needs it.
	byScheme := meta.NewLazyRESTMapperLoader(func() (meta.RESTMapper, error) {
		return testrestmapper.TestOnlyStaticRESTMapper(c.Scheme()), nil
	})
	// The client's own mapper takes precedence, because the scheme does not contain the real scopes.
	known := meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{c.RESTMapper(), byScheme}}
	return schemeMappedClient{c, lenientMapper{known}}
}

// lenientMapper is a mapper that treats unknown kinds as namespaced, such as those of unstructured children.
type lenientMapper struct{ meta.RESTMapper }

// RESTMapping returns an assumed mapping if the kind is unknown.
func (a lenientMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := a.RESTMapper.RESTMapping(kind, versions...)
	if !meta.IsNoMatchError(err) || len(versions) == 0 {
		return mapping, err
	}
	asked := kind.WithVersion(versions[0])
	resource, _ := meta.UnsafeGuessKindToResource(asked)
	scope := assumedScope{meta.RESTScopeNamespace}
	return &meta.RESTMapping{Resource: resource, GroupVersionKind: asked, Scope: scope}, nil
}

// assumedScope is the assumed scope of an unknown kind.
type assumedScope struct{ meta.RESTScope }

// Advice returns a hint for errors that the assumption can cause, such as a missing namespace. Package children finds
// the method by an interface of its own.
func (assumedScope) Advice() string {
	return "facadetest: the client does not know whether the kind has namespaces: set it with WithRESTMapper of the " +
		"builder of the fake client"
}

// RESTMapper returns the extended mapper.
func (m schemeMappedClient) RESTMapper() meta.RESTMapper { return m.mapper }

// IsObjectNamespaced uses the extended mapper, as the method of the inner client would use its own.
func (m schemeMappedClient) IsObjectNamespaced(object runtime.Object) (bool, error) {
	return apiutil.IsObjectNamespaced(object, m.Scheme(), m.mapper)
}
