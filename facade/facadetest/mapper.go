package facadetest

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// schemeMappedClient is a client that also maps the kinds of its scheme. The mapper of controller-runtime's fake client only maps
// kinds that were added to it, so it cannot report whether other kinds are namespaced.
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
