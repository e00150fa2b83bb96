package adapters

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// Occupation knows which handlers of a kind are running in places for requests, and since when.
type Occupation struct {
	// Gauge is called with 1 when a handler takes a place, and with -1 when it leaves it; nil is nobody.
	Gauge func(handler string, more float64)

	mu      sync.Mutex
	running map[*execution.Attempt]time.Time
}

var _ execution.Place = (*Occupation)(nil)

// Holder is a handler that holds places.
type Holder struct {
	Handler string
	// Objects are how many of them it holds: one for each object.
	Objects int
	// Longest is for how long it has held one of them.
	Longest time.Duration
}

// occupation notes the attempts that run in a place. Sub-handlers run in those of their parents.
func occupation(h *Handler) Adapter {
	if h.Description.Root != "" {
		return nil
	}
	return func(next Reconciler) Reconciler {
		return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
			if a.Place == nil {
				return next.Reconcile(ctx, a)
			}
			a.Place.Enter(a)
			defer a.Place.Leave(a)
			return next.Reconcile(ctx, a)
		})
	}
}

// Enter notes that the attempt runs.
func (o *Occupation) Enter(a *execution.Attempt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.running == nil {
		o.running = map[*execution.Attempt]time.Time{}
	}
	o.running[a] = time.Now()
	if o.Gauge != nil {
		o.Gauge(a.Call.Handler.ID, 1)
	}
}

// Leave notes that it has ended.
func (o *Occupation) Leave(a *execution.Attempt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.running, a)
	if o.Gauge != nil {
		o.Gauge(a.Call.Handler.ID, -1)
	}
}

// Holders are those of now: first who holds the most places.
func (o *Occupation) Holders() (all []Holder) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for a, since := range o.running {
		at := slices.IndexFunc(all, func(h Holder) bool { return h.Handler == a.Call.Handler.ID })
		if at < 0 {
			at, all = len(all), append(all, Holder{Handler: a.Call.Handler.ID})
		}
		all[at].Objects++
		all[at].Longest = max(all[at].Longest, time.Since(since))
	}
	slices.SortFunc(all, func(a, b Holder) int {
		if a.Objects != b.Objects {
			return b.Objects - a.Objects
		}
		return strings.Compare(a.Handler, b.Handler)
	})
	return all
}

// registerPlaces registers, or finds, kopf_active_workers{operator,kind,handler} and
// kopf_workqueue_depth{operator,kind}.
func (m *Metrics) registerPlaces(registry prometheus.Registerer) (err error) {
	m.occupied, err = register(registry, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kopf_active_workers",
		Help: "Workers that are busy with a handler now: as many as the objects it is running for.",
	}, []string{"operator", "kind", "handler"}))
	if err != nil {
		return err
	}
	m.waiting, err = register(registry, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kopf_workqueue_depth", Help: "Objects that wait for a worker.",
	}, []string{"operator", "kind"}))
	return err
}

// Occupied gives what counts the places of a kind that a handler holds.
func (m *Metrics) Occupied(kind string) func(handler string, more float64) {
	if m == nil || m.occupied == nil {
		return nil
	}
	return func(handler string, more float64) { m.occupied.WithLabelValues(m.operator, kind, handler).Add(more) }
}

// Waiting gives what counts the requests of a kind that wait for a place.
func (m *Metrics) Waiting(kind string) func(more int) {
	if m == nil || m.waiting == nil {
		return nil
	}
	gauge := m.waiting.WithLabelValues(m.operator, kind)
	return func(more int) { gauge.Add(float64(more)) }
}
