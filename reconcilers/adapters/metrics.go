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

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/metrics"
)

// The outcomes that may need attention, as values of the metrics' outcome label.
const outcomeFailure, outcomeRetry, outcomeDenied = "failure", "retry", "denied"

// metricsAdapter is for operators with metrics.
func metricsAdapter(h *HandlerChain) Adapter {
	if h.metrics == nil {
		return nil
	}
	return MeasuringAdapter(h.metrics)
}

// kindText is a kind with its group, and its text in the metrics.
type kindText struct {
	kind schema.GroupKind
	text string
}

// MeasuringAdapter records the outcome and the duration of each attempt.
func MeasuringAdapter(by *metrics.OperatorMetrics) Adapter {
	var last atomic.Pointer[kindText] // most handlers have one kind: do not build its text for each attempt
	return func(next Reconciler) Reconciler {
		return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
			started := a.Now()
			result, err := next.Reconcile(ctx, a)
			known, kind := last.Load(), a.Call.GroupKind()
			if known == nil || known.kind != kind {
				known = &kindText{kind, kind.String()}
				last.Store(known)
			}
			// The write of the changes may still decide the outcome: see [recordAttempt].
			recordAttempt(by, known.text, a, a.Now().Sub(started))
			return result, err
		})
	}
}

// recordAttempt reports the attempt when its outcome is decided, which may be after the write of its changes.
func recordAttempt(by *metrics.OperatorMetrics, kind string, a *execution.Attempt, took time.Duration) {
	a.OnDecided(func() {
		by.CountAttempt(kind, a.Call.Handler.MetricsLabel(), reasonLabel(&a.Call), outcomeLabel(a), took)
	})
}

// reasonLabel returns the reason of a change, or the operation of an admission request. The operation in a request can
// be any text, so unknown ones become empty: they would add series without a limit.
func reasonLabel(c *handlers.Invocation) string {
	if c.Admission == nil {
		return string(c.Cause.Reason)
	}
	if slices.Contains(operations, c.Admission.Operation) {
		return c.Admission.Operation
	}
	return ""
}

// outcomeLabel returns the outcome of an attempt, as the metrics and observers name it.
func outcomeLabel(a *execution.Attempt) string {
	// The order matters: an ignored error is a success for the engine, and a denial is final.
	o := &a.Outcome
	switch {
	case o.Aborted:
		return "aborted"
	case o.Ignored != nil:
		return "ignored"
	case o.Final && o.Err == nil:
		return "success"
	case o.Final && isDenial(o.Denial):
		return outcomeDenied
	case o.Final:
		return outcomeFailure
	default:
		return outcomeRetry
	}
}

// isDenial reports whether the error of an admission handler is its answer, and not a failure of the handler. A
// permanent error, such as that of Deny, and an API error below 500 are answers. Other errors and panics deny the
// request, too.
func isDenial(d execution.Denial) bool {
	return d.Permanent || d.Status != nil && d.Status.Code < http.StatusInternalServerError
}

// Occupation records which handlers of a kind hold slots now, and since when.
type Occupation struct {
	// Gauge is called with 1 when a handler starts to hold a slot, and with -1 when it releases it; it may be nil. It
	// is called under the lock, so it must be quick.
	Gauge func(handler string, more float64)

	mu      sync.Mutex
	running map[*execution.Attempt]occupied
}

var _ execution.Slot = (*Occupation)(nil)

// occupied is the time since when a slot is held, and until when it may be; a zero until means without a limit.
type occupied struct{ since, until time.Time }

// SlotHolder is a handler that holds slots.
type SlotHolder struct {
	Handler string
	// Objects is the number of its slots: one for each object.
	Objects int
	// LongestHold is the longest time for which it has held one of its present slots.
	LongestHold time.Duration
	// Overdue is the longest time for which it has continued after its timeout; zero without a timeout, or before it.
	Overdue time.Duration
}

// occupationAdapter records the attempts that hold a slot. Sub-handlers run in the slot of their parent.
func occupationAdapter(h *HandlerChain) Adapter {
	if h.Description.Root != "" {
		return nil
	}
	return func(next Reconciler) Reconciler {
		return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
			// The slot is optional: see kind.Kind.
			if a.Slot == nil {
				return next.Reconcile(ctx, a)
			}
			a.Slot.Enter(a)
			defer a.Slot.Leave(a)
			return next.Reconcile(ctx, a)
		})
	}
}

// Enter records that the attempt has started.
func (o *Occupation) Enter(a *execution.Attempt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.running == nil {
		o.running = map[*execution.Attempt]occupied{}
	}
	now := occupied{since: time.Now()}
	// The timeout counts from the first attempt: only the remaining time is left.
	if timeout := a.Limits.Policy.Timeout; timeout != nil {
		now.until = now.since.Add(max(0, *timeout-a.Limits.Runtime))
	}
	o.running[a] = now
	if o.Gauge != nil {
		o.Gauge(a.Call.Handler.ID, 1)
	}
}

// Leave records that the attempt has ended.
func (o *Occupation) Leave(a *execution.Attempt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.running, a)
	if o.Gauge != nil {
		o.Gauge(a.Call.Handler.ID, -1)
	}
}

// SlotHolders returns the handlers that hold slots now, those with the most slots first.
func (o *Occupation) SlotHolders() (all []SlotHolder) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for a, now := range o.running {
		// Few handlers hold slots at the same time, so a linear search is enough.
		at := slices.IndexFunc(all, func(h SlotHolder) bool { return h.Handler == a.Call.Handler.ID })
		if at < 0 {
			at, all = len(all), append(all, SlotHolder{Handler: a.Call.Handler.ID})
		}
		all[at].Objects++
		all[at].LongestHold = max(all[at].LongestHold, time.Since(now.since))
		if !now.until.IsZero() {
			all[at].Overdue = max(all[at].Overdue, time.Since(now.until))
		}
	}
	// Sort by the number of slots, then by id, so that messages are stable.
	slices.SortFunc(all, func(a, b SlotHolder) int {
		if a.Objects != b.Objects {
			return b.Objects - a.Objects
		}
		return strings.Compare(a.Handler, b.Handler)
	})
	return all
}

// The profiler labels of a goroutine while it runs the function of a handler.
const labelOfKind, labelOfHandler = "kind", "handler"

// kindLabels are the labels of a handler for one kind.
type kindLabels struct {
	kind   string
	labels pprof.LabelSet
}

// labelsAdapter sets profiler labels on the goroutine while the function runs; goroutines that the function starts
// inherit them. Profiles of the process can then be grouped by handler.
func labelsAdapter(h *HandlerChain) Adapter {
	id := h.Description.MetricsLabel()
	var last atomic.Pointer[kindLabels] // most handlers have one kind: do not build the labels for each attempt
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
