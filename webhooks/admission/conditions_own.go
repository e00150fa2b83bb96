package admission

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// notOwnWrite is met by all requests but those that look like the operator's own writes: updates of nothing but
// annotations with these prefixes and the finalizer, and updates that remove finalizers from an object that is being
// deleted. The operator compares the same, and more, so a request that is sent in spite of this is admitted there. It
// returns false for handlers of which no such request comes.
func notOwnWrite(
	h *handlers.Handler, prefixes []string, finalizer string,
) (one admissionregistrationv1.MatchCondition, ok bool) {
	main := h.Subresource == "" || h.Subresource == "*"
	updates := len(h.Operations) == 0 || slices.Contains(h.Operations, "UPDATE")
	if !main || !updates {
		return one, false
	}
	prefixed := []string{"false"}
	for _, prefix := range prefixes {
		quoted, ok := quote(prefix + "/")
		if !ok {
			return one, false
		}
		prefixed = append(prefixed, "k.startsWith("+quoted+")")
	}
	name, ok := quote(finalizer)
	if !ok {
		return one, false
	}
	ours := "(" + strings.Join(prefixed, " || ") + ")"
	return admissionregistrationv1.MatchCondition{Name: "not-own-write", Expression: strings.Join([]string{
		`request.operation != "UPDATE" || has(request.subResource) && request.subResource != "" || object == null || ` +
			`oldObject == null || !(` + atMost(widest, "object", "oldObject"),
		sameBut("object", "oldObject", `k == "metadata"`),
		sameBut(`object["metadata"]`, `oldObject["metadata"]`, otherMetadata),
		fmt.Sprintf("[[%s, %s, %s, %s]].all(v, ", mappingIn("object"), mappingIn("oldObject"), listIn("object"),
			listIn("oldObject")) + atMost(widest, "v[0]", "v[1]", "v[2]", "v[3]"),
		"(v[0] != v[1] || v[2] != v[3])",
		sameBut("v[0]", "v[1]", ours),
		fmt.Sprintf(`(v[2].filter(f, f != %[1]s) == v[3].filter(f, f != %[1]s) || "deletionTimestamp" in `+
			`oldObject["metadata"] && oldObject["metadata"]["deletionTimestamp"] != null && `+
			`size(v[2]) < size(v[3]) && v[2].all(f, f in v[3]))))`, name),
	}, " && ")}, true
}

// widest is how many members a mapping or a list may have to be compared here. API servers bound the cost of an
// expression, and refuse requests beyond that; wider ones are left to the operator.
const widest = 100

// atMost says that none of these is wider.
func atMost(limit int, all ...string) string {
	var texts []string
	for _, one := range all {
		texts = append(texts, fmt.Sprintf("size(%s) <= %d", one, limit))
	}
	return strings.Join(texts, " && ")
}

// otherMetadata are the fields of the metadata that are compared apart, or that the API server sets.
const otherMetadata = `k in ["annotations", "finalizers", "generation", "managedFields", "resourceVersion"]`

// sameBut says that two mappings have the same values, but for the keys k for which the exception is true.
func sameBut(a, b, exception string) string {
	return fmt.Sprintf("%[1]s.all(k, %[3]s || k in %[2]s && %[1]s[k] == %[2]s[k]) && %[2]s.all(k, %[3]s || k in %[1]s)",
		a, b, exception)
}

// mappingIn and listIn are the annotations and the finalizers of an object.
func mappingIn(object string) string { return orEmpty(object, "annotations", "{}") }

func listIn(object string) string { return orEmpty(object, "finalizers", "[]") }

func orEmpty(object, field, empty string) string {
	return fmt.Sprintf(`("%[2]s" in %[1]s["metadata"] && %[1]s["metadata"]["%[2]s"] != null ? `+
		`%[1]s["metadata"]["%[2]s"] : dyn(%[3]s))`, object, field, empty)
}
