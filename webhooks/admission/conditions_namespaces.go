package admission

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/namespaces"
)

// inNamespaces is met by requests for objects in the namespaces of the scope, and for all objects outside of any
// namespace. Objects of the kind Namespace are among these, though requests for them name one. It returns false for a
// scope that cannot be said.
func inNamespaces(of namespaces.Scope) (one admissionregistrationv1.MatchCondition, ok bool) {
	const name = "request.namespace"
	said := true
	expression := of.Expression(func(expression string) string {
		quoted, ok := quote(expression)
		said = said && ok
		return name + ".matches(" + quoted + ")"
	})
	return admissionregistrationv1.MatchCondition{
		Name: "in-namespaces",
		Expression: `!has(` + name + `) || ` + name + ` == "" || request.resource.group == "" && ` +
			`request.resource.resource == "namespaces" || ` + expression,
	}, said && len(expression) <= maxText
}
