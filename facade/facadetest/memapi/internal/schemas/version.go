package schemas

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"
	kindschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/schemamutation"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// Version is one version of a kind with its schema. It is not safe for concurrent use.
type Version struct {
	kind             kindschema.GroupVersionKind
	structural       *schema.Structural
	objectValidator  *validate.SchemaValidator
	statusValidator  *validate.SchemaValidator // nil if the schema does not have a status
	selectableFields []string
	rules            func(object, before map[string]any) field.ErrorList // nil if the schema does not have rules
	types            managedfields.TypeConverter
}

// newVersion prepares the validators of a version. Building them takes time, so it is done once.
func newVersion(
	crd *apiextensionsv1.CustomResourceDefinition, v apiextensionsv1.CustomResourceDefinitionVersion,
	structural *schema.Structural,
) *Version {
	version := &Version{
		kind:       kindschema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind},
		structural: structural,
	}
	// Definitions write the paths with a leading dot.
	for _, one := range v.SelectableFields {
		version.selectableFields = append(version.selectableFields, strings.TrimPrefix(one.JSONPath, "."))
	}
	// Both validators share the adjusted schema.
	root := validationSchema(structural)
	version.objectValidator = validate.NewSchemaValidator(root, nil, "", strfmt.Default)
	if status, ok := root.Properties["status"]; ok {
		version.statusValidator = validate.NewSchemaValidator(&status, nil, "", strfmt.Default)
	}
	return version
}

// Selects reports whether a field, such as spec.size, can be used in field selectors.
func (v *Version) Selects(name string) bool { return slices.Contains(v.selectableFields, name) }

// OpenAPI returns the schema as the server publishes it. The caller may change it.
func (v *Version) OpenAPI() *spec.Schema {
	root := v.structural.ToKubeOpenAPI()
	root.AddExtension("x-kubernetes-group-version-kind", []any{
		map[string]any{"group": v.kind.Group, "version": v.kind.Version, "kind": v.kind.Kind},
	})
	return root
}

// validationSchema returns the schema for validation. As in the real server, unknown formats are not checked.
func validationSchema(structural *schema.Structural) *spec.Schema {
	walker := schemamutation.Walker{RefCallback: schemamutation.RefCallbackNoop, SchemaCallback: adjustSchema}
	return walker.WalkSchema(structural.ToKubeOpenAPI())
}

// isKnownFormat reports whether the real server checks the format.
func isKnownFormat(s *spec.Schema) bool {
	switch {
	case len(s.Type) == 0, s.Type.Contains("string"):
		return strfmt.Default.ContainsName(s.Format)
	case s.Type.Contains("integer"):
		return s.Format == "int32" || s.Format == "int64"
	case s.Type.Contains("number"):
		return s.Format == "float" || s.Format == "double"
	default:
		return false
	}
}

// adjustSchema returns a schema in the form that the validator needs, without nested schemas.
func adjustSchema(original *spec.Schema) *spec.Schema {
	s := *original
	if !isKnownFormat(&s) {
		s.Format = ""
	}
	// The validator does not implement this extension; two types have the same effect.
	if s.Extensions["x-kubernetes-int-or-string"] == true {
		s.Type = spec.StringOrArray{"integer", "string"}
	}
	return &s
}

// Default sets missing fields to the defaults of the schema.
func (v *Version) Default(object map[string]any) { fillDefaults(object, v.structural) }

// fillDefaults sets the defaults within a value, and returns the value. A field that is added by a default is filled as
// well.
func fillDefaults(value any, s *schema.Structural) any {
	if s == nil {
		return value
	}
	// A null counts as missing if it is not allowed. Objects must not share the value of the schema.
	if value == nil && !s.Nullable && s.Default.Object != nil {
		value = runtime.DeepCopyJSONValue(s.Default.Object)
	}
	switch value := value.(type) {
	case map[string]any:
		// Missing fields are set first, so that defaults within them apply as well.
		for name, property := range s.Properties {
			if _, given := value[name]; !given && property.Default.Object != nil {
				value[name] = runtime.DeepCopyJSONValue(property.Default.Object)
			}
		}
		for name, one := range value {
			value[name] = fillDefaults(one, schemaOf(name, s))
		}
	case []any:
		for i, one := range value {
			value[i] = fillDefaults(one, s.Items)
		}
	}
	return value
}

// schemaOf returns the schema of a field, or that of the values of a map.
func schemaOf(name string, s *schema.Structural) *schema.Structural {
	if s == nil {
		return nil
	}
	if property, ok := s.Properties[name]; ok {
		return &property
	}
	if s.AdditionalProperties != nil {
		return s.AdditionalProperties.Structural
	}
	return nil
}
