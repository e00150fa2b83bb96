package adapters

import (
	"context"
	"net/http"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/metrics"
)

// The outcomes of calls that may need attention, as the metrics name them.
const failure, retry, denied = "failure", "retry", "denied"

// measured is for operators that measure anything.
func measured(h *Handler) Adapter {
	if h.metrics == nil {
		return nil
	}
	return Measuring(h.metrics)
}

// kindText is a kind with its group, as the metrics name it.
type kindText struct {
	kind schema.GroupKind
	text string
}

// Measuring measures the attempts.
func Measuring(by *metrics.Operator) Adapter {
	var last atomic.Pointer[kindText] // most handlers have one kind: its text is not made for each attempt
	return func(next Reconciler) Reconciler {
		return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
			started := a.Now()
			result, err := next.Reconcile(ctx, a)
			known, kind := last.Load(), a.Call.GroupKind()
			if known == nil || known.kind != kind {
				known = &kindText{kind, kind.String()}
				last.Store(known)
			}
			measure(by, known.text, a, a.Now().Sub(started))
			return result, err
		})
	}
}

func measure(by *metrics.Operator, kind string, a *execution.Attempt, took time.Duration) {
	a.OnDecided(func() { by.Attempted(kind, a.Call.Handler.Label(), reasonLabel(&a.Call), outcomeLabel(a), took) })
}

// reasonLabel is the reason of a change, or the operation of a request for admission. A request may have any text for
// its operation, but it reaches handlers with one of the four alone.
func reasonLabel(c *handlers.Invocation) string {
	if c.Admission == nil {
		return string(c.Cause.Reason)
	}
	if slices.Contains(operations, c.Admission.Operation) {
		return c.Admission.Operation
	}
	return ""
}

func outcomeLabel(a *execution.Attempt) string {
	o := &a.Outcome
	switch {
	case o.Aborted:
		return "aborted"
	case o.Ignored != nil:
		return "ignored"
	case o.Final && o.Err == nil:
		return "success"
	case o.Final && denies(o.Denial):
		return denied
	case o.Final:
		return failure
	default:
		return retry
	}
}

// denies reports whether the error of an admission handler is its answer: a permanent error, as that of Deny is, or an
// error of the API below 500. Other errors and panics deny the request as well, but the handler has failed.
func denies(d execution.Denial) bool {
	return d.Permanent || d.Status != nil && d.Status.Code < http.StatusInternalServerError
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
	// Overdue is for how long it has gone on after its timeout, at most; zero without a timeout, or before it.
	Overdue time.Duration
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

// The labels of a goroutine while it runs the function of a handler, as a profile shows them.
const labelOfKind, labelOfHandler = "kind", "handler"

// kindLabels are the labels of a handler for one kind.
type kindLabels struct {
	kind   string
	labels pprof.LabelSet
}

// labels has the goroutine carry labels while the function runs, and those that the function starts: so a profile of
// the process tells which handler costs what.
func labels(h *Handler) Adapter {
	id := h.Description.Label()
	var last atomic.Pointer[kindLabels] // most handlers have one kind: it is not made anew for each attempt
	return func(next Reconciler) Reconciler {
		return Func(func(ctx context.Context, a *execution.Attempt) (result reconcile.Result, err error) {
			known, kind := last.Load(), a.Call.Kind()
			if known == nil || known.kind != kind {
				known = &kindLabels{kind, pprof.Labels(labelOfKind, kind, labelOfHandler, id)}
				last.Store(known)
			}
			pprof.Do(ctx, known.labels, func(ctx context.Context) { result, err = next.Reconcile(ctx, a) })
			return result, err
		})
	}
}
