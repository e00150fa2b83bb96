package clusterneeds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
)

// CheckInput is the operator that is checked.
type CheckInput struct {
	PermissionInput

	// Name is the name of the operator.
	Name string
	// Namespace is that of the operator's pods; empty if it is not known.
	Namespace string
	// Essence has the JSON pointers at which the last-handled configuration of an object is stored, and Record returns
	// those of the record of a handler.
	Essence []string
	Record  func(id string) []string
	// ClockSkew is how far the clocks of operators may differ. It matters with peering or a Lease.
	ClockSkew time.Duration
}

// Run makes all checks. It returns an error if the API server does not answer.
func Run(ctx context.Context, o CheckInput, server *Server) (CheckReport, error) {
	served, unlisted, err := o.listResources(ctx, server)
	if err != nil {
		return CheckReport{}, fmt.Errorf("checking operator %q: %w", o.Name, err)
	}
	missingPeering := o.resolvePeering(served)
	needs, unresolved := Needs(o.PermissionInput, served)
	kinds := kindCheck{operator: o, served: served, unlisted: unlisted}
	findings := slices.Concat(kinds.check(unresolved), missingPeering)
	check := permissionCheck{server: server, operator: o, granted: map[string]grantedRules{}}
	for _, need := range needs {
		if need, ok := narrowNeed(need, served); ok {
			findings = append(findings, check.check(ctx, need))
		}
	}
	findings = append(findings, check.checkSkipped()...)
	findings = append(findings, o.checkSchemas(ctx, server, served)...)
	findings = append(findings, o.checkShards(ctx, server, served)...)
	findings = append(findings, o.checkClock(server))
	slices.SortStableFunc(findings, func(a, b Finding) int { // those of one severity keep their order
		return slices.Index(severities, a.Status) - slices.Index(severities, b.Status)
	})
	return CheckReport{o.Name, findings}, ctx.Err()
}

// listResources returns the resources of the groups that matter. Unlisted is the reason why they are not complete: then
// a kind that is not among them is unknown.
func (o CheckInput) listResources(
	ctx context.Context, server *Server,
) (served []discovery.Resource, unlisted, err error) {
	served, err = discovery.ListResources(ctx, server, o.groups()...)
	var incomplete *discovery.IncompleteError
	switch {
	case errors.As(err, &incomplete):
		return served, err, nil
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		// The resources of Kubernetes itself are known, so that some permissions can still be checked.
		return BuiltIn(clientgoscheme.Scheme), err, nil
	}
	return served, nil, err
}

// peeringGroups are the groups of the peering objects.
var peeringGroups = []string{"kopf.dev", "zalando.org"}

// groups returns the API groups whose resources matter; nil for all groups, as some selectors have an open group.
func (o CheckInput) groups() (groups []string) {
	for _, one := range o.Handlers {
		if !one.Selector.Group.IsSet {
			return nil
		}
		groups = append(groups, one.Selector.Group.Text)
	}
	for _, kind := range o.CachedReads {
		groups = append(groups, kind.Group)
	}
	for _, rule := range o.Declared {
		groups = append(groups, rule.APIGroups...)
	}
	if o.Peering != "" {
		groups = append(groups, peeringGroups...)
	}
	slices.Sort(groups)
	// An empty list selects no groups, unlike nil.
	return append([]string{}, slices.Compact(groups)...)
}

// resolvePeering leaves out peering that the operator does not require, if the cluster has no such kind. It returns a
// finding for a kind that it does require.
func (o *CheckInput) resolvePeering(served []discovery.Resource) []Finding {
	isPeering := func(r discovery.Resource) bool { return slices.Contains(peeringGroups, r.Group) }
	switch {
	case o.Peering == "" || slices.ContainsFunc(served, isPeering):
		return nil
	case o.PeeringOptional:
		o.Peering = ""
		return nil
	}
	o.Peering = ""
	return []Finding{{
		Status: Failed, Check: "kind", Subject: strings.Join(peeringGroups, " or ") + " peering", Feature: "peering",
		Problem: "the peering is required, and the cluster has no kind for it: the operator waits",
		Fix:     "apply the CRDs of peering: kubectl apply -f config/crd/peerings.yaml",
	}}
}

// narrowNeed leaves out groups and subresources that the cluster does not serve, of a need for several groups. The need
// is not ok if nothing of it is left.
func narrowNeed(need Need, served []discovery.Resource) (narrowed Need, ok bool) {
	plural, sub, _ := strings.Cut(strings.Join(need.Rule.Resources, ","), "/")
	var groups []string
	known := false
	for _, r := range served {
		if r.Plural != plural || !slices.Contains(need.Rule.APIGroups, r.Group) {
			continue
		}
		known = true
		if (sub == "" || slices.Contains(r.Subresources, sub)) && !slices.Contains(groups, r.Group) {
			groups = append(groups, r.Group)
		}
	}
	// The groups of other needs were not listed.
	if need.Feature != "peering" || !known {
		return need, true
	}
	need.Rule.APIGroups = groups
	return need, len(groups) > 0
}

// leastSkew is the difference of clocks that is reported. Smaller ones are usual, and have no effect.
const leastSkew = 5 * time.Second

// checkClock compares the local clock with that of the API server. It uses the answers to the other checks.
func (o CheckInput) checkClock(server *Server) Finding {
	finding := Finding{Status: OK, Check: "clock", Subject: "difference from the API server"}
	skew := server.clock.skew
	if !server.clock.known {
		finding.Status, finding.Problem = Unknown, "the answers of the API server have no date"
		return finding
	}
	if skew.Abs() <= leastSkew {
		return finding
	}
	direction, effect := "ahead", "timeouts and delays that span restarts are wrong by that"
	if skew < 0 {
		direction = "behind"
	}
	finding.Status = Warning
	if o.Peering != "" && skew.Abs() > o.ClockSkew {
		finding.Status, effect = Failed, "peers may take the record of this operator as expired, and act, too"
	}
	finding.Problem = fmt.Sprintf("this clock is %s by %s: %s", direction, skew.Abs().Round(time.Second), effect)
	finding.Fix = "synchronize the clocks of the nodes, such as by chrony or systemd-timesyncd"
	return finding
}
