package adapters

import (
	"context"
	"runtime/pprof"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// The labels of a goroutine while it runs the function of a handler, as a profile shows them. The handler is its id,
// that of all sub-handlers of one is "<id>/*", as in metrics.
const labelOfKind, labelOfHandler = "kind", "handler"

// kindLabels are the labels of a handler for one kind.
type kindLabels struct {
	kind   string
	labels pprof.LabelSet
}

// labels has the goroutine carry labels while the function runs, and those that the function starts: so a profile of
// the process tells which handler costs what.
func labels(h *Handler) Adapter {
	id := handlerLabel(h.Description)
	var last atomic.Pointer[kindLabels] // most handlers have one kind: it is not made anew for each attempt
	return func(next Reconciler) Reconciler {
		return Func(func(ctx context.Context, a *execution.Attempt) (result reconcile.Result, err error) {
			known, kind := last.Load(), kindOf(a)
			if known == nil || known.kind != kind {
				known = &kindLabels{kind, pprof.Labels(labelOfKind, kind, labelOfHandler, id)}
				last.Store(known)
			}
			pprof.Do(ctx, known.labels, func(ctx context.Context) { result, err = next.Reconcile(ctx, a) })
			return result, err
		})
	}
}

// kindOf is empty for handlers of activities, which have no object. Whoever sends a request for admission may name any
// kind in the object: that of the resource counts.
func kindOf(a *execution.Attempt) string {
	switch {
	case a.Call.Resource != nil && a.Call.Admission != nil:
		return a.Call.Resource.Kind
	case a.Call.Cause == nil || a.Call.Admission != nil:
		return ""
	}
	kind, _ := a.Call.Cause.Body["kind"].(string)
	return kind
}
