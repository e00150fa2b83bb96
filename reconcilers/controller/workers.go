package controller

import (
	"fmt"
	"time"

	"github.com/go-logr/logr"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/queue"
)

// workers are the places for the passes of one resource, in all its namespaces. There are only as many goroutines as
// there is work.
type workers struct {
	places     *queue.Places
	occupation *adapters.Occupation
	log        logr.Logger
}

func newWorkers(deps *Dependencies, r discovery.Resource) *workers {
	w := &workers{
		occupation: &adapters.Occupation{Gauge: deps.Metrics.Occupied(r.Kind)},
		log:        deps.Log.WithValues("kind", r.Kind),
	}
	w.places = queue.NewPlaces(deps.Settings.Workers,
		queue.Observer{Waiting: deps.Metrics.Waiting(r.Kind), Stalled: w.stalled})
	return w
}

// stalled tells who is in the way of whom, and what to do about that.
func (w *workers) stalled(s queue.Stall) {
	what := "objects"
	if s.Deletions {
		what = "objects that are being deleted"
	}
	if s.Waiting == 0 {
		w.log.Info("Objects do not wait for workers any more", "waited", what)
		return
	}
	var occupied []string
	for _, h := range w.occupation.Holders() {
		occupied = append(
			occupied, fmt.Sprintf("%s: %d objects, for up to %s", h.Handler, h.Objects, h.Longest.Round(time.Second)),
		)
	}
	w.log.Info("Handlers occupy all workers, and other objects wait for them. Limit handlers with facade.Timeout, let "+
		"them end with their context, or allow more with facade.Workers; logged once until no object waits any more",
		"waiting", s.Waiting, "what", what, "since", time.Since(s.Since).Round(time.Second).String(),
		"occupied", occupied)
}
