package memapi

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// valid holds the metadata against the rules of the API, with the code of the real server for them.
func (t target) valid(object, before map[string]any) (field.ErrorList, error) {
	now, err := decoded(object)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	at := field.NewPath("metadata")
	problems := apivalidation.ValidateObjectMeta(now, t.Namespaced, apivalidation.NameIsDNSSubdomain, at)
	if before != nil {
		then, err := decoded(before)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		problems = append(problems, apivalidation.ValidateObjectMetaUpdate(now, then, at)...)
	}
	return problems, nil
}

func decoded(object map[string]any) (*metav1.ObjectMeta, error) {
	metadata := &metav1.ObjectMeta{}
	for _, name := range []string{"labels", "annotations"} {
		if _, ok := metadataOf(object)[name].(map[string]any); metadataOf(object)[name] != nil && !ok {
			return nil, fmt.Errorf("metadata.%s is no mapping", name)
		}
	}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(metadataOf(object), metadata)
	if err != nil {
		return nil, fmt.Errorf("the metadata cannot be decoded: %w", err)
	}
	return metadata, nil
}
