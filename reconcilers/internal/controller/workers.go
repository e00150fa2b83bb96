package controller

import (
	"fmt"
	"time"

	"github.com/go-logr/logr"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
)

// workers holds the slots for the passes of one resource, in all its namespaces together. Goroutines exist only for
// running passes.
type workers struct {
	slots      *source.Slots
	occupation *adapters.Occupation // the handlers that occupy the slots, for log lines and health
	log        logr.Logger
}

// newWorkers creates the slots of a resource with their metrics.
func newWorkers(deps *Dependencies, r discovery.Resource) *workers {
	w := &workers{
		occupation: &adapters.Occupation{Gauge: deps.Metrics.OccupiedGauge(r.GroupKind().String())},
		log:        logging.OfKind(deps.Log, r.GroupVersionKind),
	}
	w.slots = source.NewSlots(deps.Settings.Workers,
		source.SlotsObserver{OnWaiting: deps.Metrics.WaitingGauge(r.GroupKind().String()), OnStall: w.logStall})
	return w
}

// logStall logs which handlers occupy the workers that other objects wait for, and the remedies. A stall without
// waiting requests is the end of one.
func (w *workers) logStall(s source.Stall) {
	what := "objects"
	if s.Deletions {
		what = "objects that are being deleted"
	}
	if s.Waiting == 0 {
		w.log.Info("Objects do not wait for workers any more", "waited", what)
		return
	}
	var occupied []string
	for _, h := range w.occupation.SlotHolders() {
		occupied = append(
			occupied, fmt.Sprintf("%s: %d objects, for up to %s", h.Handler, h.Objects,
				h.LongestHold.Round(time.Second)),
		)
	}
	logging.Warn(w.log, "Handlers occupy all workers, and other objects wait for them. Limit handlers with "+
		"kopf.Timeout, let them end with their context, or allow more with Settings.Queueing.WorkerLimit; logged once "+
		"until no object waits any more",
		"waiting", s.Waiting, "what", what, "since", time.Since(s.Since).Round(time.Second).String(),
		"occupied", occupied)
}

// stuckHandlers describes the handlers that have been stuck for at least the limit: those that continue after their
// timeout, and those that occupy all workers while objects wait. A long-running handler that blocks no other object is
// not stuck.
func (w *workers) stuckHandlers(limit time.Duration) (all []string) {
	holders := w.occupation.SlotHolders()
	for _, h := range holders {
		if h.Overdue >= limit {
			all = append(all, fmt.Sprintf(
				"handler %q goes on, %s after its timeout", h.Handler, h.Overdue.Round(time.Second),
			))
		}
	}
	for _, s := range w.slots.CurrentStalls() {
		if waited := time.Since(s.Since); waited >= limit {
			all = append(all, fmt.Sprintf("%d objects wait for workers, none of which got free for %s: occupied by %q",
				s.Waiting, waited.Round(time.Second), holderNames(holders)))
		}
	}
	return all
}

// holderNames returns the ids of the handlers.
func holderNames(holders []adapters.SlotHolder) (all []string) {
	for _, h := range holders {
		all = append(all, h.Handler)
	}
	return all
}
