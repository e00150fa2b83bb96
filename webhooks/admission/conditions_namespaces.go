package admission

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
)

// namespaceCondition returns a condition that is true for objects in the namespaces of the scope, and for all
// cluster-scoped objects. Namespaces are cluster-scoped, although requests for them contain a namespace. It returns
// false for a scope that CEL cannot express.
func namespaceCondition(of namespaces.NamespaceRule) (one admissionregistrationv1.MatchCondition, ok bool) {
	const name = "request.namespace"
	// said becomes false if an expression cannot be quoted.
	said := true
	// The expressions are in RE2, which CEL uses, too.
	expression := of.MatchExpression(func(expression string) string {
		quoted, ok := quoteCEL(expression)
		said = said && ok
		return name + ".matches(" + quoted + ")"
	})
	return admissionregistrationv1.MatchCondition{
		Name: "in-namespaces",
		Expression: `!has(` + name + `) || ` + name + ` == "" || request.resource.group == "" && ` +
			`request.resource.resource == "namespaces" || ` + expression,
	}, said && len(expression) <= maxExpressionBytes
}
