package reconcilers

import (
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// handling is how the objects of one kind are handled.
func (e *engine) handling(r Resource, own []*handlers.Handler, place execution.Place) *changes.Handling {
	var changing []*adapters.Handler
	var extra []diff.Path
	for _, h := range own {
		if h.Family == handlers.Changing {
			changing = append(changing, adapters.New(h, e.metrics))
		}
		if h.Field != nil &&
			(h.Family == handlers.Changing || h.Family == handlers.Watching || h.Family == handlers.Spawning) {
			extra = append(extra, h.Field)
		}
	}
	return &changes.Handling{
		Handlers: changing, Place: place, Lens: &cause.Lens{
			Diffbase: e.Diffbase, Progress: e.Progress, Extra: extra, Redaction: e.Digests.redaction(r, own),
		},
		Progress: e.Progress, CompactSubs: e.CompactSubs, Interim: changes.NewInterim(e.Prefix), BoundTo: e.BoundTo,
		Finalizer: e.Finalizer,
		Writer:    e.writerOf(r), StatusSubresource: r.StatusSubresource, Events: e.poster,
		Backoff:    e.Backoff,
		Checkpoint: e.Checkpoint, Lifecycle: e.Lifecycle, WriteTimeout: e.writeTimeout(),
	}
}
