package adapters

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// Metrics counts and times the attempts of one operator. The zero value and nil measure nothing.
type Metrics struct {
	operator string
	attempts *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	dropped  *prometheus.CounterVec
	occupied *prometheus.GaugeVec
	waiting  *prometheus.GaugeVec
	posted   *prometheus.CounterVec
}

// Occupation knows which handlers of a kind are running in places for requests, and since when.
type Occupation struct {
	// Gauge is called with 1 when a handler takes a place, and with -1 when it leaves it; it may be nil.
	Gauge func(handler string, more float64)

	mu      sync.Mutex
	running map[*execution.Attempt]occupied
}

var _ execution.Place = (*Occupation)(nil)

// occupied is since when a place is, and until when it may be; zero is without a limit.
type occupied struct{ since, until time.Time }

// Holder is a handler that holds places.
type Holder struct {
	Handler string
	// Objects are how many of them it holds: one for each object.
	Objects int
	// Longest is for how long it has held one of them.
	Longest time.Duration
	// Overdue is for how long it has gone on after its timeout, at most; zero if it has none, or time left.
	Overdue time.Duration
}

// NewMetrics registers, or finds, the metrics shared by all operators of the process:
// kopf_handler_attempts_total{operator,kind,handler,reason,outcome},
// kopf_handler_duration_seconds{operator,kind,handler,reason}, and kopf_events_dropped_total{operator,kind}. The
// outcome is one of success, ignored, retry, failure, aborted. All sub-handlers of a registered handler, however deep,
// are counted together as the handler "<id>/*". Handlers of activities have no object: their kind is empty, and the
// reason is the activity. docs/metrics.md has them all.
func NewMetrics(operator string, registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{operator: operator}
	attempts, err := register(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kopf_handler_attempts_total", Help: "Calls of handlers by what came of them.",
	}, []string{"operator", "kind", "handler", "reason", "outcome"}))
	if err != nil {
		return nil, err
	}
	seconds, err := register(registry, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "kopf_handler_duration_seconds", Help: "How long the calls of handlers took.",
	}, []string{"operator", "kind", "handler", "reason"}))
	if err != nil {
		return nil, err
	}
	dropped, err := register(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kopf_events_dropped_total", Help: "Raw events that no handler has seen, because too many were waiting.",
	}, []string{"operator", "kind"}))
	if err != nil {
		return nil, err
	}
	m.attempts, m.seconds, m.dropped = attempts, seconds, dropped
	return m, m.registerOthers(registry)
}

// registerOthers registers, or finds, kopf_active_workers{operator,kind,handler}, kopf_workqueue_depth{operator,kind}
// and kopf_posted_events_total{operator,outcome}.
func (m *Metrics) registerOthers(registry prometheus.Registerer) (err error) {
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
	if err != nil {
		return err
	}
	m.posted, err = register(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kopf_posted_events_total", Help: "Kubernetes events that handlers have posted, by what came of them.",
	}, []string{"operator", "outcome"}))
	return err
}

// register finds what another operator of this process has registered already.
func register[C prometheus.Collector](registry prometheus.Registerer, collector C) (C, error) {
	err := registry.Register(collector)
	var already prometheus.AlreadyRegisteredError
	if errors.As(err, &already) {
		if existing, ok := already.ExistingCollector.(C); ok {
			return existing, nil
		}
	}
	if err != nil {
		return collector, fmt.Errorf("registering the metrics of handlers: %w", err)
	}
	return collector, nil
}

// Dropped gives what counts a raw event of the kind that was dropped.
func (m *Metrics) Dropped(kind string) func() {
	if m == nil || m.dropped == nil {
		return func() {}
	}
	return m.dropped.WithLabelValues(m.operator, kind).Inc
}

// Posted counts a Kubernetes event by what came of it.
func (m *Metrics) Posted(outcome string) {
	if m != nil && m.posted != nil {
		m.posted.WithLabelValues(m.operator, outcome).Inc()
	}
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

// measured is for operators that measure anything.
func measured(h *Handler) Adapter {
	if h.metrics == nil || h.metrics.attempts == nil {
		return nil
	}
	return h.metrics.Adapter
}

// Adapter measures the attempts.
func (m *Metrics) Adapter(next Reconciler) Reconciler {
	if m == nil || m.attempts == nil {
		return next
	}
	return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
		started := a.Now()
		result, err := next.Reconcile(ctx, a)
		contained(ctx, func() { m.measure(a, a.Now().Sub(started)) })
		return result, err
	})
}

func (m *Metrics) measure(a *execution.Attempt, took time.Duration) {
	kind, _ := a.Call.Cause.Body["kind"].(string)
	if a.Call.Admission != nil { // whoever sends a request may name any kind in it
		kind = a.Call.Resource.Kind
	}
	labels := []string{m.operator, kind, handlerLabel(a.Call.Handler), string(a.Call.Cause.Reason)}
	m.seconds.WithLabelValues(labels...).Observe(took.Seconds())
	m.attempts.WithLabelValues(append(labels, outcomeLabel(a.Outcome))...).Inc()
}

// handlerLabel has as many values as there are registrations, twice: how many sub-handlers there are, and under which
// ids, may be up to the object, and a series stays until the end of the process.
func handlerLabel(h *handlers.Handler) string {
	if h.Root != "" {
		return handlers.SubID(h.Root, "*")
	}
	return h.ID
}

func outcomeLabel(o execution.Outcome) string {
	switch {
	case o.Aborted:
		return "aborted"
	case o.Ignored != nil:
		return "ignored"
	case o.Final && o.Err == nil:
		return "success"
	case o.Final:
		return "failure"
	default:
		return "retry"
	}
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
		o.running = map[*execution.Attempt]occupied{}
	}
	now := occupied{since: time.Now()}
	if timeout := a.Limits.Policy.Timeout; timeout != nil {
		now.until = now.since.Add(max(0, *timeout-a.Limits.Runtime))
	}
	o.running[a] = now
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

// Holders gives the handlers that hold places now, those with the most places first.
func (o *Occupation) Holders() (all []Holder) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for a, now := range o.running {
		at := slices.IndexFunc(all, func(h Holder) bool { return h.Handler == a.Call.Handler.ID })
		if at < 0 {
			at, all = len(all), append(all, Holder{Handler: a.Call.Handler.ID})
		}
		all[at].Objects++
		all[at].Longest = max(all[at].Longest, time.Since(now.since))
		if !now.until.IsZero() {
			all[at].Overdue = max(all[at].Overdue, time.Since(now.until))
		}
	}
	slices.SortFunc(all, func(a, b Holder) int {
		if a.Objects != b.Objects {
			return b.Objects - a.Objects
		}
		return strings.Compare(a.Handler, b.Handler)
	})
	return all
}
