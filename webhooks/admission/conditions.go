package admission

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// reservedConditions is the number of conditions that do not come from filters: [ownWriteCondition] and
// [namespaceCondition].
const reservedConditions = 2

// maxConditions is the number of filter conditions: the API server accepts 64 conditions in a webhook.
// maxExpressionBytes limits their texts in bytes. The API server only limits the size of the object, which contains the
// entries of all handlers.
const (
	maxConditions      = 64 - reservedConditions
	maxExpressionBytes = 16 << 10
)

// matchConditions expresses the filters of an admission handler in CEL, so that the API server only sends requests for
// which the handler would be called. Requirements that CEL cannot express are left out: a condition must never be false
// if the filters are true. Package facade/rules/agreement compares both.
//
// If the object of a subresource has its own kind, such as Scale, the conditions are always true.
func matchConditions(h *handlers.Handler) (all []admissionregistrationv1.MatchCondition) {
	var unless string
	switch h.Subresource {
	case "", "status":
	case "*":
		// The entry also matches other subresources. Their requests must not be filtered by these conditions.
		unless = `has(request.subResource) && request.subResource != "status" || `
	default:
		return nil
	}
	size := 0
	for _, required := range h.Requirements {
		said, ok := expressRequirement(required)
		if !ok {
			continue
		}
		one := admissionregistrationv1.MatchCondition{
			// The name must be unique in the webhook, so it contains a number.
			Name:       fmt.Sprintf("%s-%d", conditionName(required), len(all)+1),
			Expression: unless + fmt.Sprintf(reviewedObjectTemplate, said),
		}
		// Conditions are joined by AND, so leaving out the rest only sends more requests.
		if size += len(one.Expression); size > maxExpressionBytes || len(all) == maxConditions {
			return all
		}
		all = append(all, one)
	}
	return all
}

// reviewedObjectTemplate applies a demand to the object that the operator's filters use: the new object or, for a
// deletion, the old one. The macro all binds it to a name, because the demand refers to it several times.
const reviewedObjectTemplate = "[object == null ? oldObject : object].all(" + objectVariable + ", " +
	objectVariable + " == null || %s)"

// objectVariable is the name of the object in demands.
const objectVariable = "it"

// conditionName returns the name of a condition, by the metadata or the field that it requires.
func conditionName(r handlers.Requirement) string {
	if len(r.Path) == 3 && r.Path.HasPrefix("metadata") {
		switch r.Path[1] {
		case "annotations":
			return "annotation"
		case "labels":
			return "label"
		}
	}
	return "field"
}
