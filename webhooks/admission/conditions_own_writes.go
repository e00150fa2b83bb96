package admission

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// ownWriteCondition returns a condition that is false for requests that look like the operator's own writes: updates
// that only change annotations with these prefixes and the finalizer, and updates that remove finalizers from an object
// that is being deleted. The operator makes the same comparison and further ones, so it admits such requests if they
// are sent. It returns false for handlers that cannot get such requests.
//
// Without the condition, each write of the engine would be a request to the operator's own webhooks.
func ownWriteCondition(
	h *handlers.Handler, prefixes []string, finalizer string,
) (one admissionregistrationv1.MatchCondition, ok bool) {
	main := h.Subresource == "" || h.Subresource == "*" // the condition only covers the main resource
	updates := len(h.Operations) == 0 || slices.Contains(h.Operations, "UPDATE")
	if !main || !updates {
		return one, false
	}
	// Without prefixes, the expression must still be valid.
	prefixed := []string{"false"}
	for _, prefix := range prefixes {
		quoted, ok := quoteCEL(prefix + "/")
		if !ok {
			return one, false
		}
		prefixed = append(prefixed, "k.startsWith("+quoted+")")
	}
	name, ok := quoteCEL(finalizer)
	if !ok {
		return one, false
	}
	ours := "(" + strings.Join(prefixed, " || ") + ")"
	// The expression is a negated conjunction: an UPDATE of the main resource, with small objects, and without changes
	// outside of the metadata, in other metadata, and in foreign annotations or finalizers. At least one of annotations
	// and finalizers must differ: an update without changes is not an own write. The list v avoids repetitions of both.
	return admissionregistrationv1.MatchCondition{Name: "not-own-write", Expression: strings.Join([]string{
		// Everything else than an update of an object is sent.
		`request.operation != "UPDATE" || has(request.subResource) && request.subResource != "" || object == null || ` +
			`oldObject == null || !(` + sizesAtMost(maxComparedMembers, "object", "oldObject"),
		equalExceptKeys("object", "oldObject", `k == "metadata"`),
		equalExceptKeys(`object["metadata"]`, `oldObject["metadata"]`, specialMetadataKeys),
		fmt.Sprintf("[[%s, %s, %s, %s]].all(v, ", annotationsOf("object"), annotationsOf("oldObject"),
			finalizersOf("object"),
			finalizersOf("oldObject")) + sizesAtMost(maxComparedMembers, "v[0]", "v[1]", "v[2]", "v[3]"),
		"(v[0] != v[1] || v[2] != v[3])",
		equalExceptKeys("v[0]", "v[1]", ours),
		fmt.Sprintf(`(v[2].filter(f, f != %[1]s) == v[3].filter(f, f != %[1]s) || "deletionTimestamp" in `+
			`oldObject["metadata"] && oldObject["metadata"]["deletionTimestamp"] != null && `+
			`size(v[2]) < size(v[3]) && v[2].all(f, f in v[3]))))`, name),
	}, " && ")}, true
}

// maxComparedMembers limits the members of mappings and lists in this comparison. The API server limits the cost of an
// expression, and rejects requests that exceed it. The operator itself compares larger ones.
const maxComparedMembers = 100

// sizesAtMost returns an expression that is true if all of these have at most this size.
func sizesAtMost(limit int, all ...string) string {
	var texts []string
	for _, one := range all {
		texts = append(texts, fmt.Sprintf("size(%s) <= %d", one, limit))
	}
	return strings.Join(texts, " && ")
}

// specialMetadataKeys contains the fields of the metadata that are compared separately, or that the API server sets.
const specialMetadataKeys = `k in ["annotations", "finalizers", "generation", "managedFields", "resourceVersion"]`

// equalExceptKeys returns an expression that is true if two mappings have the same values, except for keys k for which
// the exception is true.
func equalExceptKeys(a, b, exception string) string {
	return fmt.Sprintf("%[1]s.all(k, %[3]s || k in %[2]s && %[1]s[k] == %[2]s[k]) && %[2]s.all(k, %[3]s || k in %[1]s)",
		a, b, exception)
}

// annotationsOf returns the annotations of an object.
func annotationsOf(object string) string { return metadataOrEmpty(object, "annotations", "{}") }

// finalizersOf returns the finalizers of an object.
func finalizersOf(object string) string { return metadataOrEmpty(object, "finalizers", "[]") }

// metadataOrEmpty returns a field of the metadata, or an empty value for a missing one. The type must be dyn, because
// the branches of a conditional expression have to agree.
func metadataOrEmpty(object, field, empty string) string {
	return fmt.Sprintf(`("%[2]s" in %[1]s["metadata"] && %[1]s["metadata"]["%[2]s"] != null ? `+
		`%[1]s["metadata"]["%[2]s"] : dyn(%[3]s))`, object, field, empty)
}
