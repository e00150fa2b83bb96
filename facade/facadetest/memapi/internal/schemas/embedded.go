package schemas

import (
	"errors"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kindschema "k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/json"
)

// visitEmbedded calls found for each complete Kubernetes object within a value, such as an object in a template field.
func visitEmbedded(value any, s *schema.Structural, at *field.Path, found func(at *field.Path, object map[string]any)) {
	if s == nil {
		return
	}
	// Objects can be nested in maps and lists at any depth.
	switch value := value.(type) {
	case map[string]any:
		if s.XEmbeddedResource {
			found(at, value)
		}
		for name, one := range value {
			here := at.Child(name)
			// Error paths distinguish fields of the schema from keys of a map.
			if _, named := s.Properties[name]; !named {
				here = at.Key(name)
			}
			visitEmbedded(one, schemaOf(name, s), here, found)
		}
	case []any:
		for i, one := range value {
			visitEmbedded(one, s.Items, at.Index(i), found)
		}
	}
}

// coerceMetadata removes unknown fields from the metadata of an object, and returns their paths.
func coerceMetadata(object map[string]any, at *field.Path) (unknown []string, err error) {
	given, found := object["metadata"]
	if !found {
		return nil, nil
	}
	metadata, dropped, err := decodeMetadata(given)
	if err != nil {
		return nil, err
	}
	for _, name := range dropped {
		unknown = append(unknown, at.Child("metadata").String()+"."+name)
	}
	// The typed metadata is encoded again, which also drops empty fields.
	object["metadata"], err = runtime.DefaultUnstructuredConverter.ToUnstructured(metadata)
	return unknown, err
}

// decodeMetadata decodes metadata, and returns the paths of its unknown fields.
func decodeMetadata(given any) (metadata *metav1.ObjectMeta, dropped []string, err error) {
	data, err := utiljson.Marshal(given)
	if err != nil {
		return nil, nil, err
	}
	metadata = &metav1.ObjectMeta{}
	// The strict decoder reports unknown fields, but decodes the rest.
	strict, err := json.UnmarshalStrict(data, metadata)
	if err != nil {
		return nil, nil, err
	}
	for _, one := range strict {
		if in := json.FieldError(nil); errors.As(one, &in) {
			dropped = append(dropped, in.FieldPath())
		}
	}
	return metadata, dropped, nil
}

// coerceEmbedded is coerceMetadata for all embedded objects. It returns the first problem that makes an object
// unreadable.
func (v *Version) coerceEmbedded(object map[string]any) (unknown []string, problem error) {
	// The object itself is visited as well if its schema marks it as an embedded resource.
	visitEmbedded(object, v.structural, nil, func(at *field.Path, one map[string]any) {
		for _, name := range []string{"apiVersion", "kind"} {
			if value, given := one[name]; given {
				if _, ok := value.(string); !ok && problem == nil {
					problem = field.Invalid(at.Child(name), value, "must be a string")
				}
			}
		}
		given := one["metadata"]
		dropped, err := coerceMetadata(one, at)
		if err != nil && problem == nil {
			problem = field.Invalid(at.Child("metadata"), given, err.Error())
		}
		unknown = append(unknown, dropped...)
	})
	return unknown, problem
}

// validateEmbedded validates the kinds and metadata of all embedded objects.
func (v *Version) validateEmbedded(object map[string]any) field.ErrorList {
	var problems field.ErrorList
	visitEmbedded(object, v.structural, nil, func(at *field.Path, one map[string]any) {
		// The apiVersion and the kind are required; the metadata is optional.
		problems = append(problems, typeProblems(at, one)...)
		if one["metadata"] == nil {
			return
		}
		metadata, _, err := decodeMetadata(one["metadata"])
		if err != nil {
			problems = append(problems, field.Invalid(at.Child("metadata"), one["metadata"], err.Error()))
			return
		}
		if metadata.Name == "" {
			metadata.Name = "unnamed" // a template need not have a name
		}
		// The scope of the kind is unknown, so a namespace is accepted.
		problems = append(problems, apivalidation.ValidateObjectMeta(
			metadata, metadata.Namespace != "", path.ValidatePathSegmentName, at.Child("metadata"),
		)...)
	})
	return problems
}

// typeProblems validates the apiVersion and the kind of an embedded object, with the messages of the real server.
func typeProblems(at *field.Path, object map[string]any) field.ErrorList {
	var problems field.ErrorList
	for _, name := range []string{"apiVersion", "kind"} {
		value, given := object[name]
		text, ok := value.(string)
		switch {
		case !given:
			problems = append(problems, field.Required(at.Child(name), ""))
		case !ok:
			problems = append(problems, field.Invalid(at.Child(name), value, "must be a string"))
		case text == "":
			problems = append(problems, field.Invalid(at.Child(name), text, "must not be empty"))
		case name == "kind":
			if wrong := validation.IsDNS1035Label(strings.ToLower(text)); len(wrong) > 0 {
				problems = append(problems, field.Invalid(at.Child(name), text,
					"may have mixed case, but should otherwise match: "+strings.Join(wrong, ",")))
			}
		default:
			if _, err := kindschema.ParseGroupVersion(text); err != nil {
				problems = append(problems, field.Invalid(at.Child(name), text, err.Error()))
			}
		}
	}
	return problems
}

// Prune removes unknown fields, and nulls where the schema does not allow them, from an object without apiVersion and
// kind. It returns the paths of the unknown fields. Metadata that cannot be decoded are an error.
func (v *Version) Prune(object map[string]any) (unknown []string, err error) {
	// Metadata have a schema of their own.
	unknown, err = coerceMetadata(object, nil)
	if err != nil {
		return nil, err // its text equals that of the real server
	}
	unknown = append(unknown, pruning.PruneWithOptions(
		object, v.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true},
	)...)
	dropNulls(object, v.structural)
	// Embedded objects are pruned after the object that contains them.
	within, err := v.coerceEmbedded(object)
	return append(unknown, within...), err
}

// Decode removes fields from a stored object that the version does not have, or no longer has.
func (v *Version) Decode(object map[string]any) {
	pruning.Prune(object, v.structural, true)
	dropNulls(object, v.structural)
}

// dropNulls removes nulls that the schema neither allows nor replaces by a default. A nullable field keeps its null.
func dropNulls(value any, s *schema.Structural) {
	switch value := value.(type) {
	case map[string]any:
		for name, one := range value {
			of := schemaOf(name, s)
			if one == nil && of != nil && !of.Nullable && of.Default.Object == nil {
				delete(value, name)
				continue
			}
			dropNulls(one, of)
		}
	case []any:
		if s == nil {
			return
		}
		for _, one := range value {
			dropNulls(one, s.Items)
		}
	}
}
