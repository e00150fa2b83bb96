package controller

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/storages"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// newKind returns the settings and services that the handlers of one kind share.
func (c *Controller) newKind() kind.HandledKind {
	return kind.HandledKind{
		Settings: c.deps.Settings, Resource: &c.resource, Cache: c, Slot: c.workers.occupation, Gate: c.turn.Gate,
		Takeovers: c.turn.Takeovers, Writer: c.deps.writerFor(c.resource), StatusSubresource: c.resource.HasStatus(),
		Events: c.deps.Events, Journal: c.journal,
	}
}

// newChanges returns the engine for the changes of one kind. All handlers of the kind share the stored memory, also
// those of other controllers.
func newChanges(deps *Dependencies, of kind.HandledKind, own, all []*adapters.HandlerChain) *changes.ChangeHandling {
	s, families, r := deps.Settings, adapters.ByFamily(own), *of.Resource
	// A nil *Children in the interface would not compare equal to nil.
	var waits changes.Waits
	if deps.Children != nil {
		waits = deps.Children
	}
	// Only the annotation storage can bind the memory to the uid of its object; the zero value of other storages names
	// no annotation for that.
	essences, _ := s.Diffbase.(diffbase.Annotations)
	// A renamed handler finds its progress under its former ids.
	of.Progress = storages.WithFormerIDs(s.Progress, renamedIn(families.Changing))
	return &changes.ChangeHandling{
		HandledKind: of, Waits: waits, IneffectivePatchLabels: &sync.Map{},
		Handlers: families.Changing, Conditions: deps.conditionsFor(r, families.Condition), Lens: lensOf(s, r, all),
		InterimStorage: changes.NewInterimStorage(s.Prefix, essences.Bound),
		Dependents:     deps.Dependents, Sight: widestSight(families),
	}
}

// renamedIn returns the former ids of the handlers, or nil if no handler has any.
func renamedIn(all []*adapters.HandlerChain) storages.Renamed {
	isRenamed := func(h *adapters.HandlerChain) bool { return len(h.Description.FormerIDs) > 0 }
	if !slices.ContainsFunc(all, isRenamed) {
		return nil
	}
	var renamed storages.Renamed
	for _, h := range all {
		renamed = renamed.AddFormerIDs(h.Description.ID, h.Description.FormerIDs)
	}
	return renamed
}

// widestSight returns which part of an object the passes depend on: the largest part that any of the handlers reads.
func widestSight(families adapters.Families) handlers.Sight {
	sees := handlers.SeesEssence
	for _, h := range slices.Concat(families.Changing, families.Background, families.Child) {
		sees = min(sees, h.Description.CriteriaSight())
	}
	return sees
}

// lensOf returns the lens that reads the stored memory of one kind's objects. All handlers share the essence, so it
// includes the fields that any of them needs.
func lensOf(s kind.Settings, r discovery.Resource, own []*adapters.HandlerChain) *cause.Lens {
	var extra []diff.Path
	for _, h := range own {
		if field := h.Description.EssenceField(); field != nil {
			extra = append(extra, field)
		}
	}
	lens := &cause.Lens{
		Diffbase: s.Diffbase, Progress: s.Progress, Prefix: s.Prefix, ExtraPaths: extra,
		Redaction: sharedRedaction(s.Digests, r, own),
	}
	// Conditions are our own writes to the status, and must not count as changes.
	if len(adapters.ByFamily(own).Condition) > 0 {
		lens.Hide = conditionTypesOf(s, r).WithoutConditions
	}
	return lens
}

// secretKind is the kind whose objects are stored as keyed digests, if Settings.Digests demands it.
var secretKind = schema.GroupKind{Kind: "Secret"}

// sharedRedaction returns the redacted paths of one kind. Its handlers share the stored memory, so a path that one of
// them redacts is redacted for all.
func sharedRedaction(d kind.Digests, r discovery.Resource, own []*adapters.HandlerChain) cause.Redaction {
	kept := cause.Redaction{Limit: d.Limit, Keys: d.Keys}
	if d.Secrets && r.GroupKind() == secretKind {
		kept.Paths = []diff.Path{nil} // the empty path is the whole object
		return kept
	}
	for _, h := range own {
		for _, path := range h.Description.RedactedPaths {
			if !slices.ContainsFunc(kept.Paths, func(other diff.Path) bool { return slices.Equal(other, path) }) {
				kept.Paths = append(kept.Paths, path)
			}
		}
	}
	return kept
}

// JournalOf returns the journal of one kind. Values that must not be stored on the objects are not kept in the journal
// either.
func (d *Dependencies) JournalOf(r discovery.Resource, own []*adapters.HandlerChain) *journal.KindJournal {
	return d.Journal.ForKind(r.GroupKind(), sharedRedaction(d.Settings.Digests, r, own).Paths)
}

// HoldsNew reports whether an object that is about to be created needs the finalizer for any of the handlers. It
// evaluates the filters of the handlers as the first pass will. It returns the error of a filter or of a storage.
func HoldsNew(
	ctx context.Context, s kind.Settings, r discovery.Resource, own []*adapters.HandlerChain, body map[string]any,
) (bool, error) {
	now, err := lensOf(s, r, own).New(body)
	if err != nil {
		return false, err
	}
	c := cause.Detect(cause.Observation{Body: body, Finalizer: s.Finalizer, New: now})
	return adapters.AnyHolds(ctx, adapters.ByFamily(own), c)
}
