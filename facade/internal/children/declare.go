package children

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

var (
	errNil    = errors.New("it is nil: leave it out, or pass an object")
	errNoName = errors.New("it has no name: give it one, as it is found again by that; names by generateName differ " +
		"with each call")
)

// declared is one child as it is to be.
type declared struct {
	identity

	place   string // the index among the children of the call, for messages
	object  *unstructured.Unstructured
	content content // as the handler has declared it
	rules   Rules
	digest  string // of the handler's declaration, if the child is made until it is done
}

// failure returns the error of this child.
func (d declared) failure(err error) error { return fmt.Errorf("%s, %s: %w", d.place, d.identity, err) }

// declare flattens the arguments of a handler, and copies them into one form. The error names each child that cannot be
// applied by its index, as if there were no lists; the others are returned.
func declare(scheme *runtime.Scheme, given []any) (all []declared, err error) {
	var failed []error
	i := 0
	eachDeclared(given, Rules{}, func(object any, rules Rules, err error) {
		child := declared{place: fmt.Sprintf("child %d", i), rules: rules}
		i++
		switch {
		case err != nil:
		case object == nil:
			err = errNil
		default:
			child.object, err = encode(scheme, object)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", child.place, err))
		} else {
			all = append(all, child)
		}
	})
	return all, errors.Join(failed...)
}

// encode makes an object of its JSON, with its kind, and without what only the API server sets.
func encode(scheme *runtime.Scheme, object any) (*unstructured.Unstructured, error) {
	if object, ok := object.(*unstructured.Unstructured); ok {
		return normalized(object.Object)
	}
	data, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding a %T: %w", object, err)
	}
	var tree map[string]any
	if err := utiljson.Unmarshal(data, &tree); err != nil {
		return nil, fmt.Errorf("encoding a %T: %w", object, err)
	}
	if typed, ok := object.(runtime.Object); ok && tree["kind"] == nil {
		kind, err := apiutil.GVKForObject(typed, scheme)
		if err != nil {
			return nil, fmt.Errorf("finding the kind of a %T: %w; set its TypeMeta, or add its type to the scheme, "+
				"such as by AddToScheme in kopf.Settings", object, err)
		}
		tree["apiVersion"], tree["kind"] = kind.GroupVersion().String(), kind.Kind
	}
	return normalized(tree)
}

// normalized checks an object, and gives a copy that can be applied.
func normalized(tree map[string]any) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("encoding it: %w", err)
	}
	var own map[string]any
	if err := utiljson.Unmarshal(data, &own); err != nil {
		return nil, fmt.Errorf("encoding it: %w", err)
	}
	dropNulls(own)
	if status, ok := own["status"].(map[string]any); ok && len(status) == 0 {
		delete(own, "status") // as types without omitempty have it
	}
	version, _ := own["apiVersion"].(string)
	kind, _ := own["kind"].(string)
	if version == "" || kind == "" {
		return nil, fmt.Errorf("it has no kind: apiVersion is %q, kind is %q; set both", version, kind)
	}
	metadata, ok := own["metadata"].(map[string]any)
	if name, _ := metadata["name"].(string); !ok || name == "" {
		return nil, fmt.Errorf("%s: %w", kind, errNoName)
	}
	for _, field := range []string{
		"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
		"deletionGracePeriodSeconds", "managedFields", "selfLink", "generateName",
	} {
		delete(metadata, field)
	}
	return &unstructured.Unstructured{Object: own}, nil
}

// dropNulls removes fields that types have without omitempty: nobody means to own their absence.
func dropNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			if inner == nil {
				delete(value, key)
			} else {
				dropNulls(inner)
			}
		}
	case []any:
		for _, inner := range value {
			dropNulls(inner)
		}
	}
}
