package manifests

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterneeds"
)

// role is a Role or a ClusterRole, with its binding.
type role struct {
	// Namespace is empty for a ClusterRole.
	Kind, Name, Namespace string
	Rules                 []explainedRule
}

// explainedRule is a rule with the features that need it, for a comment.
type explainedRule struct {
	rbacv1.PolicyRule

	features, handlers []string
}

// Reason returns the features and the handlers.
func (r explainedRule) Reason() string {
	text := strings.Join(r.features, "; ")
	if len(r.handlers) > 0 {
		text += ": " + strings.Join(r.handlers, ", ")
	}
	// Ids are texts of the user, and a comment is one line.
	return literal(strings.Join(strings.Fields(text), " "))
}

// Roles returns the roles of the operator, the ClusterRole first, then by namespace.
func (g generator) Roles() []role {
	by := map[string][]explainedRule{}
	for _, need := range g.Needs {
		for _, namespace := range g.namespacesOf(need) {
			by[namespace] = addRule(by[namespace], need)
		}
	}
	var all []role
	for namespace, rules := range by {
		one := role{Kind: "ClusterRole", Name: g.Operator(), Rules: rules}
		if namespace != "" {
			one = role{Kind: "Role", Name: g.ObjectName(), Namespace: namespace}
			for _, rule := range rules {
				if !isGranted(by[""], rule) {
					one.Rules = append(one.Rules, rule)
				}
			}
		}
		if len(one.Rules) > 0 {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b role) int { return cmp.Compare(a.Namespace, b.Namespace) })
	return all
}

// namespacesOf returns the namespaces in which a rule is granted, as they stand in templates; "" is the whole cluster.
func (g generator) namespacesOf(need clusterneeds.Need) (all []string) {
	for _, name := range need.Namespaces(g.Namespaces, g.Namespace) {
		if name == "" {
			return []string{""}
		}
		all = append(all, g.templateNamespace(name))
	}
	return all
}

// addRule adds the rule of a need, or its verbs and reasons to a rule for the same resources.
func addRule(rules []explainedRule, need clusterneeds.Need) []explainedRule {
	added := explainedRule{PolicyRule: need.Rule, features: []string{need.Feature}}
	for _, h := range need.Handlers {
		// Other handlers exist only for the operator itself. Their ids contain the location of the registration.
		if h.Call != nil || h.Index != nil {
			added.handlers = append(added.handlers, h.ID)
		}
	}
	for i, one := range rules {
		if slices.Equal(one.APIGroups, added.APIGroups) && slices.Equal(one.Resources, added.Resources) &&
			slices.Equal(one.ResourceNames, added.ResourceNames) &&
			slices.Equal(one.NonResourceURLs, added.NonResourceURLs) {
			rules[i].Verbs = sortVerbs(slices.Concat(one.Verbs, added.Verbs))
			rules[i].features = appendMissing(one.features, added.features)
			rules[i].handlers = appendMissing(one.handlers, added.handlers)
			return rules
		}
	}
	added.Verbs = sortVerbs(added.Verbs)
	added.handlers = appendMissing(nil, added.handlers)
	return append(rules, added)
}

// appendMissing appends the texts that are not in the list, in their order.
func appendMissing(list, more []string) []string {
	for _, one := range more {
		if !slices.Contains(list, one) {
			list = append(list, one)
		}
	}
	return list
}

// verbOrder is the order in which the documentation of Kubernetes lists verbs.
var verbOrder = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

// sortVerbs returns the verbs in the usual order, each once; unusual ones come last.
func sortVerbs(verbs []string) []string {
	verbs = slices.Clone(verbs)
	rank := func(verb string) string {
		if i := slices.Index(verbOrder, verb); i >= 0 {
			return fmt.Sprint(i)
		}
		return verb
	}
	slices.SortStableFunc(verbs, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	return slices.Compact(verbs)
}

// isGranted reports whether one of the rules grants everything that the other one does.
func isGranted(rules []explainedRule, other explainedRule) bool {
	return slices.ContainsFunc(rules, func(one explainedRule) bool {
		return len(one.ResourceNames) == 0 && len(other.NonResourceURLs) == 0 &&
			containsAll(one.APIGroups, other.APIGroups) && containsAll(one.Resources, other.Resources) &&
			containsAll(one.Verbs, other.Verbs)
	})
}

// containsAll reports whether the list has all elements of the other one.
func containsAll(list, other []string) bool {
	return !slices.ContainsFunc(other, func(one string) bool { return !slices.Contains(list, one) })
}
