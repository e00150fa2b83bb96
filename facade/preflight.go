package kopf

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/preflight"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
)

// checkCluster makes the checks of the command preflight, with the permissions of the configuration. The namespace is
// that of the operator's pods; empty if it is not known.
func (op *Operator) checkCluster(
	ctx context.Context, given serving.RunFlags, config *rest.Config, namespace string,
) (preflight.CheckReport, error) {
	runnableOperator{op}.Apply(given)
	described, err := op.describeForPreflight(namespace)
	if err != nil {
		return preflight.CheckReport{}, err
	}
	server, err := preflight.Connect(config, nil)
	if err != nil {
		return preflight.CheckReport{}, err
	}
	return preflight.Run(ctx, described, server)
}

// describeForPreflight returns the operator as its checks need it, by a plan of the current settings.
func (op *Operator) describeForPreflight(namespace string) (preflight.CheckInput, error) {
	op.registry.Lock()
	defer op.registry.Unlock()
	_, plan, err := op.planWithNewScheme()
	if err != nil {
		return preflight.CheckInput{}, err
	}
	return op.preflightOf(plan, namespace)
}

// preflightOf describes the operator for its checks. The caller holds the lock of the registry.
func (op *Operator) preflightOf(plan []reconcilers.Registration, namespace string) (preflight.CheckInput, error) {
	kept := op.settings.values.Persistence
	essence, err := defaults.EssencePlaces(kept.DiffbaseStorage)
	if err != nil {
		return preflight.CheckInput{}, fmt.Errorf("checking operator %q: %w", op.name, err)
	}
	return preflight.CheckInput{
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
		server, err := preflight.Connect(m.GetConfig(), m.GetHTTPClient())
		if err == nil {
			var report preflight.CheckReport
			report, err = preflight.Run(ctx, described, server)
			logReport(log, report)
		}
		if err != nil && ctx.Err() == nil {
			log.V(1).Info("Cannot check what the operator needs in the cluster", "error", err.Error())
		}
		return nil
	}))
}

// logReport logs the problems of a report. Unknown results are not problems.
func logReport(log logr.Logger, report preflight.CheckReport) {
	for _, one := range report.Findings {
		values := []any{
			"check", one.Check, "subject", one.Subject, "problem", one.Problem, "fix", one.Fix,
			"handlers", one.Handlers,
		}
		switch one.Status {
		case preflight.Failed:
			logging.Warn(log, "The cluster lacks something that the operator needs; see the command preflight",
				values...)
		case preflight.Warning:
			log.Info("The cluster lacks something that the operator can use; see the command preflight", values...)
		}
	}
}
