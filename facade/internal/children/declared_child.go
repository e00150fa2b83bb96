package children

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
)

var (
	errNilChild = errors.New("it is nil: leave it out, or pass an object")
	errNoName   = errors.New("it has no name: give it one, as it is found again by that; names by generateName " +
		"differ with each call")
)

// declaredChild is one child as the handler has declared it, completed with the marks of the parent.
type declaredChild struct {
	identity

	position string // "child 0" and so on: the index in the call, for messages
	object   *unstructured.Unstructured
	content  fingerprint // of the declaration by the handler
	rules    Rules
	digest   string // stored digest of the declaration; empty without UntilDone
}

// childError adds the position and the identity of the child to an error.
func (d declaredChild) childError(err error) error {
	return fmt.Errorf("%s, %s: %w", d.position, d.identity, err)
}

// decodeChildren flattens the arguments of a handler and copies each object into its unstructured form. The copy
// protects the declaration from later changes by the handler. The error names each invalid child by its index in the
// flattened order. The valid children are returned as well.
func decodeChildren(scheme *runtime.Scheme, given []any) (all []declaredChild, err error) {
	var failed []error
	// The index counts invalid children, too: it must match the order in which the user reads the arguments.
	i := 0
	eachDeclared(given, Rules{}, func(object any, rules Rules, err error) {
		child := declaredChild{position: fmt.Sprintf("child %d", i), rules: rules}
		i++
		switch {
		case err != nil:
		// A nil interface in the arguments is usually a mistake.
		case object == nil:
			err = errNilChild
		default:
			child.object, err = toUnstructured(scheme, object)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", child.position, err))
		} else {
			all = append(all, child)
		}
	})
	return all, errors.Join(failed...)
}

// toUnstructured converts an object to its JSON form with apiVersion and kind, without the fields that only the API
// server sets.
func toUnstructured(scheme *runtime.Scheme, object any) (*unstructured.Unstructured, error) {
	if object, ok := object.(*unstructured.Unstructured); ok {
		return normalizedCopy(object.Object)
	}
	// The conversion by JSON is the same for typed objects, apply configurations and maps.
	data, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding a %T: %w", object, err)
	}
	// Utiljson keeps integers as int64, as all of apimachinery does.
	var tree map[string]any
	if err := utiljson.Unmarshal(data, &tree); err != nil {
		return nil, fmt.Errorf("encoding a %T: %w", object, err)
	}
	// Typed objects usually have an empty TypeMeta, so the scheme supplies the kind.
	if typed, ok := object.(runtime.Object); ok && tree["kind"] == nil {
		kind, err := apiutil.GVKForObject(typed, scheme)
		if err != nil {
			return nil, fmt.Errorf("finding the kind of a %T: %w; set its TypeMeta, or add its type to the scheme, "+
				"such as by AddToScheme in kopf.Settings", object, err)
		}
		tree["apiVersion"], tree["kind"] = kind.GroupVersion().String(), kind.Kind
	}
	return normalizedCopy(tree)
}

// normalizedCopy validates an object and returns a deep copy that can be applied. The copy consists of JSON types only,
// which DeepCopy requires.
func normalizedCopy(tree map[string]any) (*unstructured.Unstructured, error) {
	// The tree of an Unstructured may contain Go types of the handler, such as []string. JSON converts them.
	data, err := json.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("encoding it: %w", err)
	}
	var own map[string]any
	if err := utiljson.Unmarshal(data, &own); err != nil {
		return nil, fmt.Errorf("encoding it: %w", err)
	}
	// Go types without omitempty encode null fields. Applying a null would claim ownership of the field's absence.
	own, _ = codec.WithoutNulls(own).(map[string]any)
	if status, ok := own["status"].(map[string]any); ok && len(status) == 0 {
		delete(own, "status") // Go types without omitempty encode an empty status
	}
	// The mistakes that the API server would describe less clearly are reported here.
	version, _ := own["apiVersion"].(string)
	kind, _ := own["kind"].(string)
	if version == "" || kind == "" {
		return nil, fmt.Errorf("it has no kind: apiVersion is %q, kind is %q; set both", version, kind)
	}
	metadata, ok := own["metadata"].(map[string]any)
	if name, _ := metadata["name"].(string); !ok || name == "" {
		return nil, fmt.Errorf("%s: %w", kind, errNoName)
	}
	// An object that was read from the cluster has these fields. Some of them make the request fail or conditional
	// (managedFields, resourceVersion); the others belong to the API server.
	for _, field := range []string{
		"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
		"deletionGracePeriodSeconds", "managedFields", "selfLink", "generateName",
	} {
		delete(metadata, field)
	}
	return &unstructured.Unstructured{Object: own}, nil
}
