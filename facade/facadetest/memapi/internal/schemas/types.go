package schemas

import (
	"fmt"
	"maps"

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
	root.Properties["metadata"] = *metadataReference("ObjectMeta")
	all := map[string]*spec.Schema{name: root}
	maps.Copy(all, metadataTypes())
	// Kinds that keep unknown fields need types that permit them.
	types, err := managedfields.NewTypeConverter(all, v.preservesUnknownFields)
	if err != nil {
		return nil, fmt.Errorf("reading the types of %s: %w", v.kind, err)
	}
	v.types = types
	return types, nil
}

// metadataReference returns a reference to a metadata type.
func metadataReference(name string) *spec.Schema {
	return spec.RefSchema("#/definitions/" + metaPrefix + name)
}

// metadataTypes returns the types of the metadata that all objects have. Their merge keys must equal those of the real
// server.
func metadataTypes() map[string]*spec.Schema {
	text := *spec.StringProperty()
	of := func(fields map[string]spec.Schema) *spec.Schema {
		return &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}, Properties: fields}}
	}
	list := func(item *spec.Schema, extensions spec.Extensions) spec.Schema {
		s := spec.ArrayProperty(item)
		s.Extensions = extensions
		return *s
	}
	owner := of(map[string]spec.Schema{
		"apiVersion": text, "kind": text, "name": text, "uid": text,
		"controller": *spec.BooleanProperty(), "blockOwnerDeletion": *spec.BooleanProperty(),
	})
	owner.AddExtension("x-kubernetes-map-type", "atomic")
	managed := of(map[string]spec.Schema{
		"manager": text, "operation": text, "apiVersion": text, "time": text, "fieldsType": text,
		"fieldsV1": *of(nil), "subresource": text,
	})
	fields := map[string]spec.Schema{
		"labels": *spec.MapProperty(&text), "annotations": *spec.MapProperty(&text),
		"finalizers": list(&text, spec.Extensions{"x-kubernetes-list-type": "set"}),
		"ownerReferences": list(metadataReference("OwnerReference"), spec.Extensions{
			"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{"uid"},
		}),
		"managedFields": list(metadataReference("ManagedFieldsEntry"),
			spec.Extensions{"x-kubernetes-list-type": "atomic"}),
		"generation": *spec.Int64Property(), "deletionGracePeriodSeconds": *spec.Int64Property(),
	}
	for _, name := range []string{
		"name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "creationTimestamp",
		"deletionTimestamp",
	} {
		fields[name] = text
	}
	return map[string]*spec.Schema{
		metaPrefix + "ObjectMeta": of(fields), metaPrefix + "OwnerReference": owner,
		metaPrefix + "ManagedFieldsEntry": managed,
	}
}
