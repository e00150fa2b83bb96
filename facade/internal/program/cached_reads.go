package program

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
)

// CheckCachedReads checks that each object of CachedReads names a kind.
func CheckCachedReads(objects []client.Object, scheme *runtime.Scheme) (problems []error) {
	for i, object := range objects {
		if err := checkKind(object, scheme); err != nil {
			problems = append(problems, fmt.Errorf("CachedReads[%d]: %w", i, err))
		}
	}
	return problems
}

func checkKind(object client.Object, scheme *runtime.Scheme) error {
	if object == nil {
		return errors.New("the object is nil: give an empty one of the kind, such as &corev1.Secret{}")
	}
	_, err := serving.CachedKind(object, scheme)
	switch {
	case runtime.IsNotRegisteredError(err):
		return fmt.Errorf(
			"the scheme does not know %T: give the AddToScheme of its package to Settings.AddToScheme", object,
		)
	case err != nil:
		return fmt.Errorf("an object of the type %T without apiVersion and kind names no kind: %w", object, err)
	}
	return nil
}
