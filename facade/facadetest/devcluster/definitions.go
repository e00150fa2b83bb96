package devcluster

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/conversion"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/util/webhook"
)

// definitionScheme converts definitions to the internal type, which the validation of the real server expects.
var definitionScheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme
})

// validateDefinition validates a definition with the code of the real server. The checks include schemas, names, and
// the cost of CEL rules.
func validateDefinition(is, was *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	// Defaults are set in copies, so the caller's definitions remain as they were sent.
	now, err := internalDefinition(is)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	if was == nil {
		return validation.ValidateCustomResourceDefinition(context.Background(), now)
	}
	then, err := internalDefinition(was)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	return validation.ValidateCustomResourceDefinitionUpdate(context.Background(), now, then)
}

// internalDefinition returns the definition with defaults, as the internal type.
func internalDefinition(
	crd *apiextensionsv1.CustomResourceDefinition,
) (*apiextensions.CustomResourceDefinition, error) {
	full := crd.DeepCopy()
	definitionScheme().Default(full)
	internal := &apiextensions.CustomResourceDefinition{}
	if err := definitionScheme().Convert(full, internal, nil); err != nil {
		return nil, fmt.Errorf("converting the definition %s: %w", crd.Name, err)
	}
	return internal, nil
}

// noServices rejects webhooks that are configured with a service, because services do not have pods here.
type noServices struct{}

// ResolveEndpoint always returns an error.
func (noServices) ResolveEndpoint(string, string, int32) (*url.URL, error) {
	return nil, errConversionService
}

var errConversionService = errors.New("the development cluster has no pods behind services: " +
	"set spec.conversion.webhook.clientConfig.url of the definition instead of clientConfig.service")

// converterFactory creates the factory for conversion webhooks of the real server. It is created at the first use.
var converterFactory = sync.OnceValues(func() (*conversion.CRConverterFactory, error) {
	identity := func(resolver webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver { return resolver }
	return conversion.NewCRConverterFactory(noServices{}, identity)
})

// newConverter returns a function that calls the conversion webhook of a definition. It implements
// memapi.Extensions.NewConverter.
func newConverter(crd *apiextensionsv1.CustomResourceDefinition) (
	func(object map[string]any, to string) (map[string]any, error), error,
) {
	factory, err := converterFactory()
	if err != nil {
		return nil, err
	}
	// The stored definition may lack the defaults that the factory requires.
	full := crd.DeepCopy()
	definitionScheme().Default(full)
	converter, _, err := factory.NewConverter(full)
	if err != nil {
		return nil, err
	}
	// The webhook is called for each object.
	return func(object map[string]any, to string) (map[string]any, error) {
		gv := schema.GroupVersion{Group: crd.Spec.Group, Version: to}
		converted, err := converter.ConvertToVersion(&unstructured.Unstructured{Object: object}, gv)
		if err != nil {
			return nil, err
		}
		result, ok := converted.(*unstructured.Unstructured)
		if !ok {
			return nil, fmt.Errorf("the conversion of %s returned a %T", crd.Name, converted)
		}
		return result.Object, nil
	}, nil
}
