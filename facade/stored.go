package kopf

import (
	"slices"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/draining"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/reviews"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
)

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
