package clusterneeds

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nowhere is the namespace of the review of permissions in the whole cluster. Such a review needs a namespace, and no
// namespace can have this name, so that its rules are those of ClusterRoleBindings alone.
const nowhere = "all.namespaces"

// grantedRules are the rules that apply in one namespace. With incomplete, there can be others, which the authorizers
// of the API server do not list.
type grantedRules struct {
	rules      []rbacv1.PolicyRule
	incomplete bool
	err        error
}

// permissionCheck compares the needs with the permissions of the current user.
type permissionCheck struct {
	server   *Server
	operator CheckInput
	granted  map[string]grantedRules // by namespace; "" is the whole cluster
	matching []string                // namespaces that match the patterns; nil before they are listed
	skipped  int                     // the number of served namespaces that are not checked
}

// maxNamespaces limits the served namespaces that are checked: each of them takes at least one request.
const maxNamespaces = 20

// rulesIn returns the rules of a namespace. Each is reviewed once.
func (c *permissionCheck) rulesIn(ctx context.Context, namespace string) grantedRules {
	if found, ok := c.granted[namespace]; ok {
		return found
	}
	spec := authorizationv1.SelfSubjectRulesReviewSpec{Namespace: cmp.Or(namespace, nowhere)}
	review, err := c.server.api.SelfSubjectRulesReviews().Create(ctx,
		&authorizationv1.SelfSubjectRulesReview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		c.granted[namespace] = grantedRules{err: fmt.Errorf("reviewing permissions: %w", err)}
		return c.granted[namespace]
	}
	found := grantedRules{incomplete: review.Status.Incomplete}
	for _, one := range review.Status.ResourceRules {
		found.rules = append(found.rules, rbacv1.PolicyRule{
			Verbs: one.Verbs, APIGroups: one.APIGroups, Resources: one.Resources, ResourceNames: one.ResourceNames,
		})
	}
	for _, one := range review.Status.NonResourceRules {
		found.rules = append(found.rules, rbacv1.PolicyRule{Verbs: one.Verbs, NonResourceURLs: one.NonResourceURLs})
	}
	c.granted[namespace] = found
	return found
}

// missingIn returns the requests of the rule that are not permitted in the namespace.
func (c *permissionCheck) missingIn(
	ctx context.Context, rule rbacv1.PolicyRule, namespace string,
) (missing []request, err error) {
	granted := c.rulesIn(ctx, namespace)
	if granted.err != nil {
		return nil, granted.err
	}
	missing = missingFrom(granted, rule)
	if !granted.incomplete {
		return missing, nil
	}
	// Authorizers such as webhooks answer questions about requests only.
	var denied []request
	for _, one := range missing {
		allowed, err := c.isAllowed(ctx, one, namespace)
		if err != nil {
			return nil, err
		}
		if !allowed {
			denied = append(denied, one)
		}
	}
	return denied, nil
}

// missingFrom returns the requests of the rule that the listed rules do not permit.
func missingFrom(granted grantedRules, rule rbacv1.PolicyRule) []request {
	return slices.DeleteFunc(requestsOf(rule), func(r request) bool { return r.isGranted(granted.rules) })
}

// isAllowed reviews one request.
func (c *permissionCheck) isAllowed(ctx context.Context, r request, namespace string) (bool, error) {
	var asked authorizationv1.SelfSubjectAccessReview
	if r.path != "" {
		asked.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: r.path, Verb: r.verb}
	} else {
		plural, sub, _ := strings.Cut(r.resource, "/")
		asked.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: r.verb, Group: r.group, Resource: plural, Subresource: sub, Name: r.name,
		}
	}
	review, err := c.server.api.SelfSubjectAccessReviews().Create(ctx, &asked, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("reviewing permissions: %w", err)
	}
	return review.Status.Allowed, nil
}

// check returns the finding for one need.
func (c *permissionCheck) check(ctx context.Context, need Need) Finding {
	finding := Finding{
		Status: OK, Check: "permission", Subject: subjectOf(need.Rule), Feature: need.Feature,
		Handlers: handlerIDs(need.Handlers),
	}
	where := need.Namespaces(c.operator.Namespaces, c.operator.Namespace)
	if need.Scope == OneNamespace && where[0] == "" {
		finding.Status, finding.Problem = Unknown, "the namespace of the operator's pods is not known"
		finding.Fix = "run this command in the pod, or with --as system:serviceaccount:NAMESPACE:NAME"
		return finding
	}
	// A permission in the whole cluster applies in each namespace, so that one review is usually enough.
	if everywhere := c.rulesIn(ctx, ""); everywhere.err == nil && len(missingFrom(everywhere, need.Rule)) == 0 {
		return finding
	}
	if where[0] == "" && need.Scope == ServedNamespaces {
		where = c.matchingNamespaces(ctx)
	}
	if len(where) > maxNamespaces {
		c.skipped, where = max(c.skipped, len(where)-maxNamespaces), where[:maxNamespaces]
	}
	missing, lacking, err := c.missingAmong(ctx, need.Rule, where)
	switch {
	case err != nil:
		finding.Status, finding.Problem = Unknown, err.Error()
		finding.Fix = "permit the user to review its own permissions, as the ClusterRole system:basic-user does"
	case len(missing) > 0:
		finding.Status, finding.Problem = Failed, need.Without
		if need.Optional {
			finding.Status = Warning
		}
		finding.Subject = subjectOf(ruleFor(need.Rule, missing))
		finding.Fix = fixRule(ruleFor(need.Rule, missing), lacking)
	}
	return finding
}

// checkSkipped returns a finding if there are more namespaces than are checked.
func (c *permissionCheck) checkSkipped() (findings []Finding) {
	if c.skipped > 0 {
		findings = append(findings, Finding{
			Status: Unknown, Check: "permission", Subject: fmt.Sprintf("in %d more namespaces", c.skipped),
			Problem: fmt.Sprintf("the permissions are checked in %d of the served namespaces", maxNamespaces),
			Fix:     "check others by -n, or grant the rules in the whole cluster",
		})
	}
	return findings
}

// missingAmong returns the requests that are not permitted in all of the namespaces, and the namespaces that lack any.
func (c *permissionCheck) missingAmong(
	ctx context.Context, rule rbacv1.PolicyRule, all []string,
) (missing []request, lacking []string, err error) {
	for _, namespace := range all {
		more, err := c.missingIn(ctx, rule, namespace)
		if err != nil {
			return nil, nil, err
		}
		if len(more) > 0 {
			missing, lacking = append(missing, more...), append(lacking, namespace)
		}
	}
	return missing, lacking, nil
}

// matchingNamespaces returns the namespaces that match the patterns of the operator, which may have its permissions
// there only. It is the whole cluster if there are no patterns or no such namespaces, or if they may not be listed.
func (c *permissionCheck) matchingNamespaces(ctx context.Context) []string {
	if c.matching != nil {
		return c.matching
	}
	c.matching = []string{""}
	if patterns := c.operator.Namespaces; len(patterns) > 0 {
		if names, err := c.server.MatchingNamespaces(ctx, patterns); err == nil && len(names) > 0 {
			c.matching = names
		}
	}
	return c.matching
}

// mostNamed limits the namespaces in a fix.
const mostNamed = 5

// fixRule returns the fix for a missing rule, with the rule as YAML in one line.
func fixRule(rule rbacv1.PolicyRule, namespaces []string) string {
	role := "a ClusterRole of the operator"
	if namespaces[0] != "" {
		shown := namespaces[:min(len(namespaces), mostNamed)]
		role = "a Role of the operator in " + strings.Join(shown, ", ")
		if more := len(namespaces) - len(shown); more > 0 {
			role += fmt.Sprintf(" and %d more namespaces", more)
		}
	}
	text, err := json.Marshal(rule)
	if err != nil {
		return "" // a rule consists of texts
	}
	return fmt.Sprintf("add this rule to %s: %s", role, text)
}

// subjectOf returns the verbs and the resources of a rule, as "list,watch widgets.example.org".
func subjectOf(rule rbacv1.PolicyRule) string {
	on := slices.Clone(rule.NonResourceURLs)
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			plural, sub, isSub := strings.Cut(resource, "/")
			if group != "" {
				plural += "." + group
			}
			if isSub {
				plural += "/" + sub
			}
			on = append(on, plural)
		}
	}
	text := strings.Join(rule.Verbs, ",") + " " + strings.Join(on, ",")
	if len(rule.ResourceNames) > 0 {
		text += " " + strings.Join(rule.ResourceNames, ",")
	}
	return text
}
