package hierarchies_test

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/hierarchies"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// errOmitted replaces the handled object that Kopf uses by default, as Go arguments cannot be omitted.
var errOmitted = errors.New("there is no handled object to take this from")

func TestVectorsHierarchy(t *testing.T) {
	vectors.Play(t, "hierarchy", nil, func(t *testing.T, input vectors.Fields) (any, error) {
		vectors.Known(t, input, "flags", "fn", "handled", "labels", "name", "namespace", "objs", "owner")
		flags := vectors.Known(t, orEmpty(input["flags"]), "forced", "force", "strict", "nested", "controller",
			"block_owner_deletion")
		objects := input["objs"]
		err := act(input, flags, objects)
		return map[string]any{"objs": objects}, err
	})
}

func act(input, flags vectors.Fields, objects any) error {
	owner := ownerOf(input)
	switch function := input.Text("fn", ""); function {
	case "append_owner_reference":
		return hierarchies.AppendOwnerReference(owner, objects, references(flags)...)
	case "remove_owner_reference":
		return hierarchies.RemoveOwnerReference(owner, objects)
	case "adopt":
		kopf := hierarchies.LikeKopf(func(error) {}) // D-adopt-namespace: the vectors are Kopf's
		return hierarchies.Adopt(owner, objects, append(all[hierarchies.AdoptOption](flags), kopf)...)
	case "label":
		labels, err := labelsOf(input, owner)
		if err != nil {
			return err
		}
		return hierarchies.Label(objects, labels, all[hierarchies.LabelOption](flags)...)
	case "harmonize_naming":
		name, err := textOf(input, "name", owner, client.Object.GetName)
		if err != nil {
			return err
		}
		return hierarchies.HarmonizeNaming(objects, name, all[hierarchies.NamingOption](flags)...)
	case "adjust_namespace":
		namespace, err := textOf(input, "namespace", owner, client.Object.GetNamespace)
		if err != nil {
			return err
		}
		return hierarchies.AdjustNamespace(objects, namespace, all[hierarchies.NamespaceOption](flags)...)
	default:
		return fmt.Errorf("the harness does not know the function %s", function)
	}
}

func orEmpty(value any) any {
	if value == nil {
		return map[string]any{}
	}
	return value
}

// ownerOf returns the given owner, or the handled object.
func ownerOf(input vectors.Fields) client.Object {
	for _, key := range []string{"owner", "handled"} {
		if body := input.Mapping(key); body != nil {
			return &unstructured.Unstructured{Object: body}
		}
	}
	return nil
}

// labelsOf returns the given labels, or those of the owner.
func labelsOf(input vectors.Fields, owner client.Object) (map[string]string, error) {
	given, ok := input["labels"].(map[string]any)
	if !ok {
		if _, null := input["labels"]; null || owner == nil {
			return nil, errOmitted
		}
		return owner.GetLabels(), nil
	}
	labels := map[string]string{}
	for key, value := range given {
		labels[key], _ = value.(string)
	}
	return labels, nil
}

// textOf returns the given text (empty for null), or the text of the owner.
func textOf(input vectors.Fields, key string, owner client.Object, get func(client.Object) string) (string, error) {
	if _, given := input[key]; given {
		return input.Text(key, ""), nil
	}
	if owner == nil {
		return "", errOmitted
	}
	return get(owner), nil
}

// all returns the options that a function accepts.
func all[O hierarchies.Option](flags vectors.Fields) (options []O) {
	add := func(one hierarchies.Option, is bool) {
		if option, fits := one.(O); fits && is {
			options = append(options, option)
		}
	}
	add(hierarchies.Forced(), flags.Flag("forced") || flags.Flag("force"))
	add(hierarchies.Strict(), flags.Flag("strict"))
	paths := flags.List("nested")
	if text := flags.Text("nested", ""); text != "" {
		paths = []any{text}
	}
	for _, one := range paths {
		text, ok := one.(string)
		if !ok {
			text = codec.FormatPath(diff.Path(vectors.Path(one)))
		}
		add(hierarchies.Nested(text), true)
	}
	return options
}

func references(flags vectors.Fields) (options []hierarchies.ReferenceOption) {
	if value, given := flags["controller"]; given {
		options = append(options, hierarchies.Controller(optionalBool(value)))
	}
	if value, given := flags["block_owner_deletion"]; given {
		options = append(options, hierarchies.BlockOwnerDeletion(optionalBool(value)))
	}
	return options
}

// optionalBool returns nil for null.
func optionalBool(value any) *bool {
	is, ok := value.(bool)
	if !ok {
		return nil
	}
	return &is
}
