package facadetest

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	"k8s.io/apimachinery/pkg/runtime"
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
	return mapped{c, meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{c.RESTMapper(), byScheme}}}
}

// RESTMapper asks the client first.
func (m mapped) RESTMapper() meta.RESTMapper { return m.mapper }

// IsObjectNamespaced goes by the mapper.
func (m mapped) IsObjectNamespaced(object runtime.Object) (bool, error) {
	return apiutil.IsObjectNamespaced(object, m.Scheme(), m.mapper)
}
