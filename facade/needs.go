package kopf

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterneeds"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/program"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
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

// preflightOf describes the operator for its checks. The caller holds the lock of the registry.
func (op *Operator) preflightOf(plan []reconcilers.Registration, namespace string) (clusterneeds.CheckInput, error) {
	kept := op.settings.values.Persistence
	essence, err := defaults.EssencePlaces(kept.DiffbaseStorage)
	if err != nil {
		return clusterneeds.CheckInput{}, fmt.Errorf("checking operator %q: %w", op.name, err)
	}
	return clusterneeds.CheckInput{
		PermissionInput: op.permissionsOf(plan), Name: op.name, Namespace: namespace, Essence: essence,
		Record: func(id string) []string {
			places, _ := defaults.RecordPlaces(kept.ProgressStorage, id) // the plan has reported the error
			return places
		},
		ClockSkew: op.settings.values.Peering.ClockSkew,
	}, nil
}

// preflightWait is how long the checks beside a running operator wait for its readiness. Without a permission, it may
// never be ready.
const preflightWait = 30 * time.Second

// addPreflight adds the same checks to the manager of a program. They run beside the operator after it is ready, once,
// and do not delay its start. Only programs of the command line report on the cluster.
func (op *Operator) addPreflight(m ctrl.Manager, plan []reconcilers.Registration) error {
	if !op.coordination.HasOwnManager || op.coordination.Embedded || op.flags.DeletionsOnly {
		return nil
	}
	log := m.GetLogger().WithName(op.name)
	return m.Add(manager.RunnableFunc(func(ctx context.Context) error {
		timer := time.NewTimer(preflightWait)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return nil
		case <-op.ready:
		case <-timer.C:
		}
		op.registry.Lock()
		described, err := op.preflightOf(plan, credentials.PodNamespace())
		op.registry.Unlock()
		if err != nil {
			return nil //nolint:nilerr // a storage that fails is reported with its objects
		}
		// The client is that of the manager, so that credentials are renewed.
		server, err := clusterneeds.Connect(m.GetConfig(), m.GetHTTPClient())
		if err == nil {
			var report clusterneeds.CheckReport
			report, err = clusterneeds.Run(ctx, described, server)
			logReport(log, report)
		}
		if err != nil && ctx.Err() == nil {
			log.V(1).Info("Cannot check what the operator needs in the cluster", "error", err.Error())
		}
		return nil
	}))
}

// logReport logs the problems of a report. Unknown results are not problems.
func logReport(log logr.Logger, report clusterneeds.CheckReport) {
	for _, one := range report.Findings {
		values := []any{
			"check", one.Check, "subject", one.Subject, "problem", one.Problem, "fix", one.Fix,
			"handlers", one.Handlers,
		}
		switch one.Status {
		case clusterneeds.Failed:
			logging.Warn(log, "The cluster lacks something that the operator needs; see the command preflight",
				values...)
		case clusterneeds.Warning:
			log.Info("The cluster lacks something that the operator can use; see the command preflight", values...)
		}
	}
}
