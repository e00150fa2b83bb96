package facadetest

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// mapped is a client that knows the kinds of its scheme: controller-runtime's fake client does not know whether they
// have namespaces, unless it is told.
type mapped struct {
	client.Client

	mapper meta.RESTMapper
}

func withMapper(c client.Client) client.Client {
	// With a scheme of all kinds of Kubernetes, it takes a while, and only Ensure asks.
	byScheme := meta.NewLazyRESTMapperLoader(func() (meta.RESTMapper, error) {
		return testrestmapper.TestOnlyStaticRESTMapper(c.Scheme()), nil
	})
	known := meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{c.RESTMapper(), byScheme}}
	return mapped{c, assuming{known}}
}

// assuming takes kinds that are not known for namespaced ones, such as those of unstructured children.
type assuming struct{ meta.RESTMapper }

// RESTMapping never fails for an unknown kind.
func (a assuming) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := a.RESTMapper.RESTMapping(kind, versions...)
	if !meta.IsNoMatchError(err) || len(versions) == 0 {
		return mapping, err
	}
	asked := kind.WithVersion(versions[0])
	resource, _ := meta.UnsafeGuessKindToResource(asked)
	scope := assumedScope{meta.RESTScopeNamespace}
	return &meta.RESTMapping{Resource: resource, GroupVersionKind: asked, Scope: scope}, nil
}

// assumedScope is the scope of an unknown kind.
type assumedScope struct{ meta.RESTScope }

// Advice is for an error that comes of it.
func (assumedScope) Advice() string {
	return "facadetest: the client does not know whether the kind has namespaces: set it with WithRESTMapper of the " +
		"builder of the fake client"
}

// RESTMapper asks the client first.
func (m mapped) RESTMapper() meta.RESTMapper { return m.mapper }

// IsObjectNamespaced goes by the mapper.
func (m mapped) IsObjectNamespaced(object runtime.Object) (bool, error) {
	return apiutil.IsObjectNamespaced(object, m.Scheme(), m.mapper)
}
