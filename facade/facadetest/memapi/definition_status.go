package memapi

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// defaultDefinition fills in the optional names and the conversion strategy of a definition.
func (t target) defaultDefinition(object map[string]any) {
	spec, ok := object["spec"].(map[string]any)
	if t.groupResource() != definitionsResource.groupResource() || !ok {
		return
	}
	// The strategy None only changes the apiVersion of objects.
	if spec["conversion"] == nil {
		spec["conversion"] = map[string]any{"strategy": string(apiextensionsv1.NoneConverter)}
	}
	names, _ := spec["names"].(map[string]any)
	kind, _ := names["kind"].(string)
	for name, value := range map[string]string{"singular": strings.ToLower(kind), "listKind": kind + "List"} {
		if given, _ := names[name].(string); given == "" && kind != "" {
			names[name] = value
		}
	}
}

// setDefinitionStatus writes the status of a definition before it is stored, because the definition is served at once.
// The real server writes the same conditions and names a moment later.
func (t target) setDefinitionStatus(object map[string]any) {
	if t.groupResource() != definitionsResource.groupResource() {
		return
	}
	names, _, _ := unstructured.NestedMap(object, "spec", "names")
	status, ok := object["status"].(map[string]any)
	if !ok {
		status = map[string]any{}
		object["status"] = status
	}
	status["acceptedNames"] = names
	// Versions that were once the storage version stay in the list, as objects may still be stored in them.
	stored, _, _ := unstructured.NestedStringSlice(object, "status", "storedVersions")
	versions, _, _ := unstructured.NestedSlice(object, "spec", "versions")
	for _, one := range versions {
		version, _ := one.(map[string]any)
		if name, _ := version["name"].(string); version["storage"] == true && !slices.Contains(stored, name) {
			stored = append(stored, name)
		}
	}
	all := []any{}
	for _, name := range stored {
		all = append(all, name)
	}
	status["storedVersions"] = all
	// An update keeps the conditions with their times.
	if status["conditions"] != nil {
		return
	}
	conditions := []any{}
	for _, one := range []struct{ kind, reason, message string }{
		{string(apiextensionsv1.NamesAccepted), "NoConflicts", "no conflicts found"},
		{string(apiextensionsv1.Established), "InitialNamesAccepted", "the initial names have been accepted"},
	} {
		conditions = append(conditions, map[string]any{
			"type": one.kind, "status": "True", "reason": one.reason, "message": one.message,
			"lastTransitionTime": currentTimestamp(),
		})
	}
	status["conditions"] = conditions
}
