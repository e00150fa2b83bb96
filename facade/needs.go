package kopf

import (
	"errors"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterneeds"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/program"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// Needs declares permissions for the requests of handlers themselves: those by Client and APIReader, and by
// [Change.Ensure] for children without [Selection.Owns]. The commands manifests and preflight add them to what the
// handlers need by their registration. Nothing else depends on them. Kopf: none.
//
//	op.Needs(rbacv1.PolicyRule{
//		APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"},
//	})
//
// A rule applies in the namespaces that the operator serves; a rule for a kind without a namespace, in the cluster. See
// docs/permissions.md.
func (op *Operator) Needs(rules ...rbacv1.PolicyRule) {
	where := registry.CallerLocation()
	if !op.isValid() {
		registry.AddOwnerless(fmt.Errorf("Needs: %w", errNoOperator))
		return
	}
	for i, rule := range rules {
		if err := checkRule(rule); err != nil {
			op.registry.AddError(where, fmt.Errorf("Needs: rule %d: %w", i, err))
		}
	}
	late := errors.New("Needs: declared after the operator was set up, so it has no effect")
	op.registry.RunIfOpen(where, late, func() { op.needs = append(op.needs, rules...) })
}

// checkRule returns an error for a rule that the API server refuses, or that grants nothing.
func checkRule(rule rbacv1.PolicyRule) error {
	hasEmpty := slices.Contains(rule.Verbs, "") || slices.Contains(rule.Resources, "") ||
		slices.Contains(rule.NonResourceURLs, "")
	switch {
	case len(rule.Verbs) == 0:
		return errors.New("it has no Verbs, such as \"get\"")
	case len(rule.NonResourceURLs) > 0 && len(rule.Resources) > 0:
		return errors.New("it has Resources and NonResourceURLs: make two rules")
	case len(rule.NonResourceURLs) == 0 && (len(rule.APIGroups) == 0 || len(rule.Resources) == 0):
		return errors.New("it needs APIGroups and Resources; the core group is \"\"")
	case hasEmpty:
		return errors.New("it has an empty verb or resource")
	}
	return nil
}

// permissionsOf describes the operator for the computation of its permissions, as a program in a pod. The caller holds
// the lock of the registry, and has made the plan from the current settings.
func (op *Operator) permissionsOf(plan []reconcilers.Registration) clusterneeds.PermissionInput {
	given, s := op.userSettings, op.settings
	peers := given.Peering
	o := clusterneeds.PermissionInput{
		Namespaces: s.scope.ServedPatterns(), ScanOnce: s.scope.NamedOnly, NoEvents: s.values.Posting.Disabled,
		Managed: s.values.Admission.Managed, Secret: s.values.Admission.asReviewSettings().KeptSecret(),
		Declared: op.needs, MetricsSecure: op.flags.Metrics.Secure,
		LeaderElection: program.ElectsInPod(op.coordinationSettings()), Shards: op.shards(),
	}
	for _, one := range plan {
		o.Handlers = append(o.Handlers, clusterneeds.HandlerNeeds(one))
	}
	if !peers.Standalone {
		o.Peering, o.PeeringClusterwide = s.values.Peering.Name, peers.Clusterwide
		o.PeeringOptional = peers.Name == "" && !peers.Mandatory
	}
	for _, object := range s.values.CachedReads {
		if kind, err := apiutil.GVKForObject(object, op.registry.Scheme); err == nil { // the plan reports the error
			o.CachedReads = append(o.CachedReads, kind)
		}
	}
	return o
}
