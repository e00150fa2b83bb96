package clusterneeds

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// every is the wildcard of RBAC.
const every = "*"

// request is a request that a rule permits, as the API server authorizes it: either a resource, which can include a
// subresource, or a path. The name is empty for all objects.
type request struct{ verb, group, resource, name, path string }

// requestsOf returns all requests of a rule. A wildcard stays one.
func requestsOf(rule rbacv1.PolicyRule) (all []request) {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, verb := range rule.Verbs {
		for _, path := range rule.NonResourceURLs {
			all = append(all, request{verb: verb, path: path})
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					all = append(all, request{verb: verb, group: group, resource: resource, name: name})
				}
			}
		}
	}
	return all
}

// isGranted reports whether one of the rules grants the request, by the rules of RBAC. A request with a wildcard is
// only granted by a wildcard.
func (r request) isGranted(rules []rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		if !hasOrEvery(rule.Verbs, r.verb) {
			return false
		}
		if r.path != "" {
			return slices.ContainsFunc(rule.NonResourceURLs, func(pattern string) bool {
				prefix, open := strings.CutSuffix(pattern, every)
				return pattern == r.path || open && strings.HasPrefix(r.path, prefix)
			})
		}
		return hasOrEvery(rule.APIGroups, r.group) && grantsResource(rule.Resources, r.resource) &&
			(len(rule.ResourceNames) == 0 || r.name != "" && slices.Contains(rule.ResourceNames, r.name))
	})
}

// Grants reports whether the rule of the need permits requests for a resource, or a subresource such as "pods/status".
func (n Need) Grants(verb, group, resource, name string) bool {
	r := request{verb: verb, group: group, resource: resource, name: name}
	return r.isGranted([]rbacv1.PolicyRule{n.Rule})
}

// grantsResource reports whether the resources of a rule include the resource. The wildcard includes subresources, and
// "*/status" that subresource of all resources; a resource alone does not include its subresources.
func grantsResource(granted []string, resource string) bool {
	_, sub, isSub := strings.Cut(resource, "/")
	return hasOrEvery(granted, resource) || isSub && slices.Contains(granted, every+"/"+sub)
}

func hasOrEvery(list []string, one string) bool {
	return slices.Contains(list, every) || slices.Contains(list, one)
}

// ruleFor returns the part of a rule that permits the requests, which are some of its own.
func ruleFor(rule rbacv1.PolicyRule, missing []request) rbacv1.PolicyRule {
	without := func(list []string, part func(request) string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(text string) bool {
			return !slices.ContainsFunc(missing, func(r request) bool { return part(r) == text })
		})
	}
	return rbacv1.PolicyRule{
		Verbs:           without(rule.Verbs, func(r request) string { return r.verb }),
		APIGroups:       without(rule.APIGroups, func(r request) string { return r.group }),
		Resources:       without(rule.Resources, func(r request) string { return r.resource }),
		ResourceNames:   without(rule.ResourceNames, func(r request) string { return r.name }),
		NonResourceURLs: without(rule.NonResourceURLs, func(r request) string { return r.path }),
	}
}
