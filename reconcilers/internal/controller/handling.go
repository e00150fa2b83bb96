package controller

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/requirements"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/storages"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// newChanges is how the changes of the objects of one kind are handled.
func newChanges(
	deps *Dependencies, turn Turn, r discovery.Resource, own []*adapters.Handler, place execution.Place,
) *changes.Handling {
	s, families := deps.Settings, adapters.ByFamily(own)
	var waits changes.Waits
	if s.Owned != nil {
		waits = s.Owned
	}
	// Only the storages of our own formats have keys with kinds.
	essences, _ := s.Diffbase.(diffbase.Annotations)
	return &changes.Handling{
		Waits: waits, Restored: &sync.Map{},
		Handlers: families.Changing, Conditions: deps.conditionsOf(r, families.Reporting),
		Place: place, Open: turn.open(), Lens: s.lens(r, own),
		Progress:    storages.WithFormerIDs(s.Progress, renamedIn(families.Changing)),
		CompactSubs: s.CompactSubs, KopfTexts: s.KopfTexts, KopfDeletions: s.KopfDeletions,
		Interim: changes.NewInterim(s.Prefix, essences.Bound), BoundTo: s.BoundTo,
		Finalizer: s.Finalizer, Writer: deps.writerFor(r), StatusSubresource: r.HasStatus(),
		Events: deps.Events, Backoff: s.Backoff, Checkpoint: s.Checkpoint, Lifecycle: s.Lifecycle,
		WriteTimeout: s.WriteTimeout, Dependents: s.Dependents, Sight: sightOf(families),
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

// lens is how the memory of the objects of one kind is read.
func (s *Settings) lens(r discovery.Resource, own []*adapters.Handler) *cause.Lens {
	var extra []diff.Path
	for _, h := range own {
		if field := h.Description.EssenceField(); field != nil {
			extra = append(extra, field)
		}
	}
	lens := &cause.Lens{
		Diffbase: s.Diffbase, Progress: s.Progress, Extra: extra, Redaction: s.Digests.redaction(r, own),
	}
	if len(adapters.ByFamily(own).Reporting) > 0 {
		lens.Hide = s.typesOf(r).Hidden
	}
	return lens
}

// Digests says of what only digests are kept on the objects. The zero value keeps all as it is.
type Digests struct {
	// Limit is how many bytes of JSON are kept by value; zero is no limit but that of the annotations.
	Limit int
	// Secrets is true if nothing of v1 Secrets is kept by value.
	Secrets bool
	// Keys are the secrets of the digests, the present one first; without any, it is the uid of the object.
	Keys [][]byte
}

var secrets = schema.GroupKind{Kind: "Secret"}

// redaction is what holds for one kind: the handlers share its memory, so what one of them wants to be kept secret is.
func (d Digests) redaction(r discovery.Resource, own []*adapters.Handler) cause.Redaction {
	redaction := cause.Redaction{Limit: d.Limit, Keys: d.Keys}
	if d.Secrets && r.GroupKind() == secrets {
		redaction.Paths = []diff.Path{nil}
		return redaction
	}
	for _, h := range own {
		for _, path := range h.Description.Redacted {
			if !slices.ContainsFunc(redaction.Paths, func(other diff.Path) bool { return slices.Equal(other, path) }) {
				redaction.Paths = append(redaction.Paths, path)
			}
		}
	}
	return redaction
}

// JournalOf is for one kind: what is not to be remembered on the objects is not to be remembered in memory, either.
func (d *Dependencies) JournalOf(r discovery.Resource, own []*adapters.Handler) *journal.Kind {
	return d.Journal.Kind(r.GroupKind(), d.Settings.Digests.redaction(r, own).Paths)
}
