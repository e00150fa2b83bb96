package kopf

import (
	"context"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/children"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/commandline"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/planning"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// planChanges predicts what the operator would do when it starts, for the command plan.
func (op *Operator) planChanges(ctx context.Context, given commandline.PlanRequest) (commandline.PlanReport, error) {
	options, err := op.plannedOptions(given)
	if err != nil {
		return nil, err
	}
	if given.Load != "" {
		dump, err := planning.LoadDump(given.Load)
		if err != nil {
			return nil, err
		}
		return planning.Make(ctx, options, dump)
	}
	cluster, err := planning.NewCluster(given.Cluster)
	if err != nil {
		return nil, err
	}
	return planning.Make(ctx, options, cluster)
}

// plannedOptions returns the options of the engine, as an operator with these flags would start with them. It calls
// functions of the user, such as AddToScheme, and holds the lock meanwhile.
func (op *Operator) plannedOptions(given commandline.PlanRequest) (reconcilers.Options, error) {
	op.registry.Lock()
	defer op.registry.Unlock()
	if given.Scoped {
		op.userSettings.Namespaces, op.userSettings.NamespacePatterns = given.Namespaces, nil
		op.userSettings.NamespaceLabels = ""
	}
	if given.FromKopf {
		op.userSettings.Persistence = AsKopf().Persistence
	}
	_, plan, err := op.planWithNewScheme()
	if err != nil {
		return reconcilers.Options{}, err
	}
	options := op.engineOptions(plan)
	kept := op.settings.values.Persistence
	options.Dependents = &children.Keeper{Prefix: kept.AnnotationPrefix, Finalizer: kept.Finalizer}
	return options, nil
}
