package kopf

import (
	"context"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/children"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/commandline"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/draining"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/planning"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/reviews"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
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
	runnableOperator{op}.Apply(given.Flags)
	op.registry.Lock()
	defer op.registry.Unlock()
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

// storedThings describes what the operator stores in a cluster, for the command drain.
func (op *Operator) storedThings() (draining.StoredState, error) {
	op.registry.Lock()
	defer op.registry.Unlock()
	_, plan, err := op.planWithNewScheme()
	if err != nil {
		return draining.StoredState{}, err
	}
	own := op.settings.values
	kept := own.Persistence
	all := draining.StoredState{
		Name: op.name, Prefix: kept.AnnotationPrefix, Finalizer: kept.Finalizer,
		Shared:   kept.KopfFormats || kept.AnnotationPrefix == keys.KopfPrefix,
		Diffbase: kept.DiffbaseStorage, Progress: kept.ProgressStorage,
		Webhooks: own.Admission.Managed, KopfWebhooks: kept.KopfFormats,
		Peering: draining.PeeringPlace{
			Name: own.Peering.Name, Clusterwide: own.Peering.Clusterwide, Standalone: own.Peering.Standalone,
			Identity: own.Peering.Identity,
		},
		Patterns: op.settings.scope.ServedPatterns(),
	}
	ids := map[discovery.Selector][]string{}
	for _, one := range reviews.WatchingHandlers(plan) {
		// These handlers are for the kinds of children, or for kinds that have other handlers as well.
		if !one.Handler.FollowsEvents() {
			all.Children = append(all.Children, one.Selector)
			continue
		}
		if _, known := ids[one.Selector]; !known {
			all.Kinds, ids[one.Selector] = append(all.Kinds, draining.StoredKind{Selector: one.Selector}), nil
		}
		if one.Handler.StoresUnderID() {
			ids[one.Selector] = slices.Concat(ids[one.Selector], []string{one.Handler.ID}, one.Handler.FormerIDs)
		}
	}
	for i := range all.Kinds {
		all.Kinds[i].IDs = ids[all.Kinds[i].Selector]
	}
	return all, nil
}
