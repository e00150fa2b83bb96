package schemas

import (
	"fmt"
	"maps"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// metaPrefix is the prefix of metadata types in the OpenAPI schemas of Kubernetes.
const metaPrefix = "io.k8s.apimachinery.pkg.apis.meta.v1."

// Types returns the types for server-side apply: they define how lists and maps of the kind are merged. They are built
// at the first call.
func (v *Version) Types() (managedfields.TypeConverter, error) {
	if v.types != nil {
		return v.types, nil
	}
	// The name of the root type. The metadata types have names of their own.
	const name = "kind"
	root := v.OpenAPI()
	if root.Properties == nil {
		root.Properties = map[string]spec.Schema{}
	}
	// The schema of a definition does not include these fields, but objects have them.
	root.Properties["apiVersion"], root.Properties["kind"] = *spec.StringProperty(), *spec.StringProperty()
	root.Properties["metadata"] = *spec.RefSchema(definitionPath(metav1.ObjectMeta{}.OpenAPIModelName()))
	all := map[string]*spec.Schema{name: root}
	maps.Copy(all, metadataTypes())
	types, err := managedfields.NewTypeConverter(all, false)
	if err != nil {
		return nil, fmt.Errorf("reading the types of %s: %w", v.kind, err)
	}
	v.types = types
	return types, nil
}

// definitionPath returns the path of a type, for references.
func definitionPath(name string) string { return "#/definitions/" + name }

// metadataTypes returns the types of metadata, with the merge keys of the real server.
var metadataTypes = sync.OnceValue(func() map[string]*spec.Schema {
	all := map[string]*spec.Schema{}
	reference := func(name string) spec.Ref { return spec.MustCreateRef(definitionPath(name)) }
	for name, definition := range openapi.GetOpenAPIDefinitions(reference) {
		if strings.HasPrefix(name, metaPrefix) {
			all[name] = &definition.Schema
		}
	}
	return all
})
