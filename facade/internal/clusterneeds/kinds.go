package clusterneeds

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
)

// kindCheck compares the kinds of an operator with those of the cluster.
type kindCheck struct {
	operator CheckInput
	served   []discovery.Resource
	unlisted error // why the resources are not complete; nil if they are
}

// check returns a finding for each kind.
func (c kindCheck) check(unresolved []Unresolved) (findings []Finding) {
	selectors, by := c.operator.bySelector()
	for _, selector := range selectors {
		isMissing := func(u Unresolved) bool { return u.Rule == nil && u.Selector == selector }
		if slices.ContainsFunc(unresolved, isMissing) {
			continue
		}
		findings = append(findings, Finding{
			Status: OK, Check: "kind", Subject: selector.String(), Handlers: handlerIDs(by[selector]),
		})
	}
	for _, one := range unresolved {
		findings = append(findings, c.checkMissing(one))
	}
	return findings
}

// checkMissing returns the finding for a kind that was not found.
func (c kindCheck) checkMissing(one Unresolved) Finding {
	if one.Rule != nil {
		return Finding{
			Status: Warning, Check: "kind", Subject: strings.Join(one.Rule.Resources, ","), Feature: "Needs",
			Problem: fmt.Sprintf("the cluster has no such resource in the groups %q", one.Rule.APIGroups),
			Fix:     "install it, or correct the rule of Needs: resources are plurals in lower case",
		}
	}
	finding := Finding{
		Status: Failed, Check: "kind", Subject: one.Selector.String(), Handlers: handlerIDs(one.Handlers),
	}
	served := c.otherVersions(one.Selector)
	switch {
	case len(one.Ambiguous) > 0:
		finding.Problem = fmt.Sprintf("several kinds have this name: %v; its handlers wait", one.Ambiguous)
		finding.Fix = "add the group to the registration"
	case c.isUnlisted(one.Selector):
		finding.Status, finding.Problem = Unknown, c.unlisted.Error()
		finding.Fix = "permit the user to read the discovery of the API server, as the ClusterRole system:discovery " +
			"does, or repair the server of the group: kubectl get apiservices"
	case len(served) > 0:
		finding.Problem = fmt.Sprintf("the version %s is not served; its handlers wait", one.Selector.Version.Text)
		finding.Fix = fmt.Sprintf("set \"served: true\" for this version in the CRD %s, or register the handlers "+
			"for %s",
			served[0].GroupResource(), strings.Join(versionsOf(served), " or "))
	case !one.Selector.IsSpecific():
		finding.Status, finding.Problem = Warning, "no kind matches; its handlers wait"
	default:
		finding.Problem = "the kind is not installed; its handlers wait"
		finding.Fix = "install its CRD: kubectl apply -f FILE"
	}
	return finding
}

// otherVersions returns the resources that the selector matches in other versions than its own.
func (c kindCheck) otherVersions(s discovery.Selector) (all []discovery.Resource) {
	for _, r := range c.served {
		s := s
		if s.Version.IsSet {
			s.Version.Text = r.Version
			if s.Matches(r) {
				all = append(all, r)
			}
		}
	}
	return all
}

// versionsOf returns the names of the versions.
func versionsOf(all []discovery.Resource) (names []string) {
	for _, r := range all {
		names = append(names, r.Version)
	}
	return names
}

// isUnlisted reports whether the kind of the selector may be among those that could not be listed.
func (c kindCheck) isUnlisted(s discovery.Selector) bool {
	var incomplete *discovery.IncompleteError
	if errors.As(c.unlisted, &incomplete) {
		return !s.Group.IsSet || incomplete.AffectsGroup(s.Group.Text)
	}
	return c.unlisted != nil
}
