package patching

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// UIDOf gives metadata.uid, empty if the body has none.
func UIDOf(body map[string]any) string {
	metadata, _ := body["metadata"].(map[string]any)
	uid, _ := metadata["uid"].(string)
	return uid
}

// VersionOf gives metadata.resourceVersion, empty if the body has none.
func VersionOf(body map[string]any) string {
	metadata, _ := body["metadata"].(map[string]any)
	version, _ := metadata["resourceVersion"].(string)
	return version
}

// Newer tells whether resource version a is later than b. Versions that cannot be compared (an empty one, or those of
// an aggregated API server that does not number them) are not newer than each other.
func Newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// sameObject trusts a body without a uid, as tests and partial objects have.
func sameObject(a, b map[string]any) bool {
	return UIDOf(a) == UIDOf(b) || UIDOf(a) == "" || UIDOf(b) == ""
}

// describe names the object in errors.
func describe(body map[string]any) string {
	object := &unstructured.Unstructured{Object: body}
	return fmt.Sprintf("%s %s %s", object.GetAPIVersion(), object.GetKind(), trimmedKey(object))
}

func trimmedKey(object *unstructured.Unstructured) string {
	if object.GetNamespace() == "" {
		return object.GetName()
	}
	return client.ObjectKeyFromObject(object).String()
}

// withMetadata adds fields to the metadata of a merge-patch, or returns it as it is if there are none to add.
func withMetadata(merge, fields map[string]any) map[string]any {
	if len(fields) == 0 {
		return merge
	}
	metadata := map[string]any{}
	if held, ok := merge["metadata"].(map[string]any); ok {
		maps.Copy(metadata, held)
	}
	maps.Copy(metadata, fields)
	out := map[string]any{}
	maps.Copy(out, merge)
	out["metadata"] = metadata
	return out
}

// splitMerge takes the status out of a merge-patch. An absent status is not a null one: the latter is a removal.
func splitMerge(merge map[string]any) (status any, present bool, rest map[string]any) {
	status, present = merge["status"]
	if !present {
		return nil, false, merge
	}
	rest = maps.Clone(merge)
	delete(rest, "status")
	return status, true, rest
}
