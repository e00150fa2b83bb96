package admission

import (
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/requirements"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// reservedConditions are the conditions that do not come from filters, such as [notOwnWrite].
const reservedConditions = 2

// API servers take 64 conditions for a webhook. They have no limit for the texts but that of an object, in which there
// are the entries of all handlers.
const (
	maxConditions = 64 - reservedConditions
	maxText       = 16 << 10
)

// matchConditions says in CEL what the filters of an admitting handler require, so that an API server does not send
// requests for which no handler would be called. Requirements that CEL cannot express are left out: a condition is
// never false where the filters are true. Package facade/rules/agreement compares both. Where the object of the request
// has a kind of its own, as that of a scale, the conditions are met.
func matchConditions(h *handlers.Handler) (all []admissionregistrationv1.MatchCondition) {
	var unless string
	switch h.Subresource {
	case "", "status":
	case "*":
		unless = `has(request.subResource) && request.subResource != "status" || `
	default:
		return nil
	}
	size := 0
	for _, required := range h.Requires {
		said, ok := demand(required)
		if !ok {
			continue
		}
		one := admissionregistrationv1.MatchCondition{
			Name:       fmt.Sprintf("%s-%d", conditionName(required), len(all)+1),
			Expression: unless + fmt.Sprintf(reviewed, said),
		}
		if size += len(one.Expression); size > maxText || len(all) == maxConditions {
			return all
		}
		all = append(all, one)
	}
	return all
}

// reviewed has the demand be about the object that the operator's filters look at: that which is to be or, for a
// deletion, that which is. It has a name, as the demand needs it several times.
const reviewed = "[object == null ? oldObject : object].all(" + it + ", " + it + " == null || %s)"

// it is what the object is called in demands.
const it = "it"

// conditionName names a condition after the metadata or the field that is required.
func conditionName(r requirements.Requirement) string {
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
