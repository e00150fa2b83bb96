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

// Definition is a custom resource definition in the form that the server uses.
type Definition struct {
	// Versions holds all versions by their names. A version without a schema is nil.
	Versions map[string]*Version
	// Storage is the name of the version that objects are stored in.
	Storage string
	// Convert converts objects between versions. It is nil if versions differ only in their apiVersion.
	Convert func(object map[string]any, to string) (map[string]any, error)
}

// Read parses a definition. Each of its errors is about one field, as in the real server. The functions implement
// features that are not a part of this package, CEL rules and conversion webhooks; definitions that need a nil one are
// refused.
func Read(
	crd *apiextensionsv1.CustomResourceDefinition,
	compile func(structural *schema.Structural) func(object, before map[string]any) field.ErrorList,
	newConverter func(crd *apiextensionsv1.CustomResourceDefinition) (
		func(object map[string]any, to string) (map[string]any, error), error,
	),
) (*Definition, field.ErrorList) {
	d := &Definition{Versions: map[string]*Version{}}
	at := field.NewPath("spec")
	var problems field.ErrorList
	if c := crd.Spec.Conversion; c != nil && c.Strategy != "" && c.Strategy != apiextensionsv1.NoneConverter {
		here := at.Child("conversion", "strategy")
		if newConverter == nil {
			return nil, field.ErrorList{unsupportedError(here, c.Strategy, "conversion webhooks")}
		}
		var err error
		if d.Convert, err = newConverter(crd); err != nil {
			problems = append(problems, field.Invalid(here, c.Strategy, err.Error()))
		}
	}
	for i, v := range crd.Spec.Versions {
		if v.Storage {
			d.Storage = v.Name
		}
		here := at.Child("versions").Index(i)
		// Problems of all versions are collected before the definition is refused.
		version, found := readVersion(crd, v, here, compile)
		problems = append(problems, found...)
		d.Versions[v.Name] = version
	}
	// Every stored object needs a version, so a definition without a storage version cannot be served.
	if d.Storage == "" {
		problems = append(problems, field.Invalid(
			at.Child("versions"), len(crd.Spec.Versions), "must have exactly one version marked as storage version",
		))
	}
	return d, problems
}

// readVersion parses the schema of one version. It returns nil without an error if the version does not have a schema.
func readVersion(
	crd *apiextensionsv1.CustomResourceDefinition, v apiextensionsv1.CustomResourceDefinitionVersion, at *field.Path,
	compile func(structural *schema.Structural) func(object, before map[string]any) field.ErrorList,
) (*Version, field.ErrorList) {
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return nil, nil
	}
	at = at.Child("schema", "openAPIV3Schema")
	var props apiextensions.JSONSchemaProps
	// The validation of structural schemas expects the internal type.
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
	// Only structural schemas support pruning and defaults.
	if problems := schema.ValidateStructural(at, structural); len(problems) > 0 {
		return nil, problems
	}
	rules := rulesIn(structural)
	if len(rules) > 0 && compile == nil {
		return nil, field.ErrorList{unsupportedError(
			at, strings.Join(rules, "; "), "x-kubernetes-validations (CEL): ignore them with Server.IgnoreRules",
		)}
	}
	version := newVersion(crd, v, structural)
	if len(rules) > 0 {
		version.rules = compile(structural)
	}
	return version, nil
}

// unsupportedError returns the error for a field whose feature exists in Kubernetes, but not here.
func unsupportedError(at *field.Path, value any, what string) *field.Error {
	return field.Invalid(at, value, fmt.Sprintf("the API server in memory does not do %s", what))
}

// rulesIn returns the CEL rules of a schema, including those of nested schemas, in alphabetical order.
func rulesIn(structural *schema.Structural) []string {
	var rules []string
	// Rules can be nested in value validations, such as those of anyOf.
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
	// The visitor iterates over maps; sorting makes the error message repeatable.
	slices.Sort(rules)
	return rules
}
