package schemas

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Definition is a custom resource definition that is understood.
type Definition struct {
	// Versions are all of them by their names; one without a schema is nil.
	Versions map[string]*Version
	// Storage is the name of the version that objects are stored in.
	Storage string
	// Convert converts objects between versions; nil if only their apiVersion differs.
	Convert Converter
}

// Compiler compiles the rules in CEL of a schema. The function that it returns holds a new object, or one that was
// another one before, against them.
type Compiler func(structural *schema.Structural) func(object, before map[string]any) field.ErrorList

// Converter returns an object, which has its apiVersion and kind, in another version.
type Converter func(object map[string]any, to string) (map[string]any, error)

// Extensions are what definitions may ask for that is not a part of this package; nil fields are refused.
type Extensions struct {
	Compile      Compiler
	NewConverter func(crd *apiextensionsv1.CustomResourceDefinition) (Converter, error)
}

// Read takes a definition apart. Its errors are those of one field each.
func Read(crd *apiextensionsv1.CustomResourceDefinition, with Extensions) (*Definition, field.ErrorList) {
	d := &Definition{Versions: map[string]*Version{}}
	at := field.NewPath("spec")
	var problems field.ErrorList
	if c := crd.Spec.Conversion; c != nil && c.Strategy != "" && c.Strategy != apiextensionsv1.NoneConverter {
		here := at.Child("conversion", "strategy")
		if with.NewConverter == nil {
			return nil, field.ErrorList{unsupported(here, c.Strategy, "conversion webhooks")}
		}
		var err error
		if d.Convert, err = with.NewConverter(crd); err != nil {
			problems = append(problems, field.Invalid(here, c.Strategy, err.Error()))
		}
	}
	for i, v := range crd.Spec.Versions {
		if v.Storage {
			d.Storage = v.Name
		}
		here := at.Child("versions").Index(i)
		version, found := readVersion(crd, v, here, with.Compile)
		problems = append(problems, found...)
		d.Versions[v.Name] = version
	}
	if d.Storage == "" {
		problems = append(problems, field.Invalid(
			at.Child("versions"), len(crd.Spec.Versions), "must have exactly one version marked as storage version",
		))
	}
	return d, problems
}

func readVersion(
	crd *apiextensionsv1.CustomResourceDefinition, v apiextensionsv1.CustomResourceDefinitionVersion, at *field.Path,
	compile Compiler,
) (*Version, field.ErrorList) {
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return nil, nil
	}
	at = at.Child("schema", "openAPIV3Schema")
	var props apiextensions.JSONSchemaProps
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		v.Schema.OpenAPIV3Schema, &props, nil,
	)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(at, "", err.Error())}
	}
	structural, err := schema.NewStructural(&props)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(at, "", err.Error())}
	}
	if problems := schema.ValidateStructural(at, structural); len(problems) > 0 {
		return nil, problems
	}
	rules := rulesIn(structural)
	if len(rules) > 0 && compile == nil {
		return nil, field.ErrorList{unsupported(
			at, strings.Join(rules, "; "), "x-kubernetes-validations (CEL): take them out with memapi.WithoutRules",
		)}
	}
	version := newVersion(crd, v, structural)
	if len(rules) > 0 {
		version.rules = compile(structural)
	}
	return version, nil
}

// unsupported blames a field for what exists in Kubernetes, but not here.
func unsupported(at *field.Path, value any, what string) *field.Error {
	return field.Invalid(at, value, fmt.Sprintf("the API server in memory does not do %s", what))
}

// rulesIn are the rules in CEL that a schema has, in order.
func rulesIn(structural *schema.Structural) []string {
	var rules []string
	visitor := schema.Visitor{
		Structural: func(s *schema.Structural) bool {
			for _, rule := range s.XValidations {
				rules = append(rules, rule.Rule)
			}
			return false
		},
		NestedValueValidation: func(s *schema.NestedValueValidation) bool {
			for _, rule := range s.ValidationExtensions.XValidations {
				rules = append(rules, rule.Rule)
			}
			return false
		},
	}
	visitor.Visit(structural)
	slices.Sort(rules)
	return rules
}
