package controller

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/requirements"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/settings"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/storages"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// newKind returns what the handlers of one kind share.
func (c *Controller) newKind() kind.Kind {
	return kind.Kind{
		Settings: c.deps.Settings, Resource: &c.resource, Cache: c, Place: c.workers.occupation, Gate: c.turn.Gate,
		Writer: c.deps.writerFor(c.resource), StatusSubresource: c.resource.HasStatus(), Events: c.deps.Events,
		Journal: c.journal,
	}
}

// newChanges is how the changes of the objects of one kind are handled.
func newChanges(deps *Dependencies, of kind.Kind, own []*adapters.Handler) *changes.Handling {
	s, families, r := deps.Settings, adapters.ByFamily(own), *of.Resource
	var waits changes.Waits
	if deps.Owned != nil {
		waits = deps.Owned
	}
	// Only the storages of our own formats have keys with kinds.
	essences, _ := s.Diffbase.(diffbase.Annotations)
	of.Progress = storages.WithFormerIDs(s.Progress, renamedIn(families.Changing))
	return &changes.Handling{
		Kind: of, Waits: waits, Restored: &sync.Map{},
		Handlers: families.Changing, Conditions: deps.conditionsOf(r, families.Reporting), Lens: lensOf(s, r, own),
		Interim:    changes.NewInterim(s.Prefix, essences.Bound),
		Dependents: deps.Dependents, Sight: sightOf(families),
	}
}

// renamedIn returns the former ids of the handlers, or nil if no handler has any.
func renamedIn(all []*adapters.Handler) storages.Renamed {
	isRenamed := func(h *adapters.Handler) bool { return len(h.Description.FormerIDs) > 0 }
	if !slices.ContainsFunc(all, isRenamed) {
		return nil
	}
	var renamed storages.Renamed
	for _, h := range all {
		renamed = renamed.With(h.Description.ID, h.Description.FormerIDs)
	}
	return renamed
}

// sightOf is what passes over objects decide by.
func sightOf(families adapters.Families) requirements.Sight {
	sees := requirements.SeesEssence
	for _, h := range slices.Concat(families.Changing, families.Spawning, families.Tending) {
		sees = min(sees, h.Description.Sight())
	}
	return sees
}

// lensOf returns what reads the memory of the objects of one kind.
func lensOf(s settings.Settings, r discovery.Resource, own []*adapters.Handler) *cause.Lens {
	var extra []diff.Path
	for _, h := range own {
		if field := h.Description.EssenceField(); field != nil {
			extra = append(extra, field)
		}
	}
	lens := &cause.Lens{
		Diffbase: s.Diffbase, Progress: s.Progress, Extra: extra, Redaction: redaction(s.Digests, r, own),
	}
	if len(adapters.ByFamily(own).Reporting) > 0 {
		lens.Hide = typesOf(s, r).Hidden
	}
	return lens
}

var secrets = schema.GroupKind{Kind: "Secret"}

// redaction returns the redacted paths of one kind: the handlers share its memory, so a path that one of them redacts
// is redacted for all.
func redaction(d settings.Digests, r discovery.Resource, own []*adapters.Handler) cause.Redaction {
	kept := cause.Redaction{Limit: d.Limit, Keys: d.Keys}
	if d.Secrets && r.GroupKind() == secrets {
		kept.Paths = []diff.Path{nil}
		return kept
	}
	for _, h := range own {
		for _, path := range h.Description.Redacted {
			if !slices.ContainsFunc(kept.Paths, func(other diff.Path) bool { return slices.Equal(other, path) }) {
				kept.Paths = append(kept.Paths, path)
			}
		}
	}
	return kept
}

// JournalOf is for one kind: what is not to be remembered on the objects is not to be remembered in memory, either.
func (d *Dependencies) JournalOf(r discovery.Resource, own []*adapters.Handler) *journal.Kind {
	return d.Journal.Kind(r.GroupKind(), redaction(d.Settings.Digests, r, own).Paths)
}
