package adapters

import (
	"context"
	"errors"
	"runtime"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/metrics"
)

// Reconciler makes one attempt. What came of it is in the attempt's outcome.
type Reconciler = reconcile.TypedReconciler[*execution.Attempt]

// Func is a function as a Reconciler.
type Func = reconcile.TypedFunc[*execution.Attempt]

// Adapter adds one concern to a Reconciler.
type Adapter func(next Reconciler) Reconciler

// Handler is a registered handler as a Reconciler of attempts: its function inside of the adapters that it needs.
type Handler struct {
	// Description is the handler as it was registered.
	Description *handlers.Handler

	metrics *metrics.Operator
	names   []string // of the adapters, outermost first
	chain   Reconciler
}

// IDs returns the ids of the handlers, in their order.
func IDs(all []*Handler) []string {
	ids := make([]string, 0, len(all))
	for _, h := range all {
		ids = append(ids, h.Description.ID)
	}
	return ids
}

var _ Reconciler = (*Handler)(nil)

// Families are the handlers of one resource by their families, each in the order of registration.
type Families struct{ Changing, Watching, Spawning, Indexing, Admitting, Owning, Tending, Reporting []*Handler }

// errGoexit is what a function fails with that ends its goroutine instead of returning.
var errGoexit = errors.New("the function ended its goroutine by runtime.Goexit")

// New makes the Reconciler of a handler, out of the chain of its family. The description must not change afterwards.
// A nil operator measures nothing.
func New(description *handlers.Handler, measured *metrics.Operator) *Handler {
	h := &Handler{Description: description, metrics: measured}
	family := chains[description.Family]
	var needed []Adapter
	for _, one := range family.adapters {
		if adapter := one.make(h); adapter != nil {
			needed, h.names = append(needed, adapter), append(h.names, one.name)
		}
	}
	h.chain = Chain(family.innermost, needed...)
	return h
}

// Chain wraps the reconciler in the adapters, the first of them outermost.
func Chain(inner Reconciler, adapters ...Adapter) Reconciler {
	for i := len(adapters) - 1; i >= 0; i-- {
		inner = adapters[i](inner)
	}
	return inner
}

// Sub makes the Reconciler of a sub-handler as its function's parent declares it: under the id of both.
func (h *Handler) Sub(declared *handlers.Handler) *Handler {
	return New(declared.Sub(h.Description), h.metrics)
}

// ByFamily takes them apart.
func ByFamily(all []*Handler) (found Families) {
	for _, h := range all {
		switch h.Description.Family {
		case handlers.Changing:
			found.Changing = append(found.Changing, h)
		case handlers.Watching:
			found.Watching = append(found.Watching, h)
		case handlers.Spawning:
			found.Spawning = append(found.Spawning, h)
		case handlers.Indexing:
			found.Indexing = append(found.Indexing, h)
		case handlers.Admitting:
			found.Admitting = append(found.Admitting, h)
		case handlers.Owning:
			found.Owning = append(found.Owning, h)
		case handlers.Tending:
			found.Tending = append(found.Tending, h)
		case handlers.Reporting:
			found.Reporting = append(found.Reporting, h)
		case handlers.Acting: // they have no resource
		}
	}
	return found
}

// Adapters are the names of the handler's adapters, the outermost one first.
func (h *Handler) Adapters() []string { return h.names }

// Ask asks the handler's chain whether the function would be called; it is not. The attempt carries the cause, and what
// the question is about: whether the handler was selected, its account, the clock. It may be used again for the next
// question, also to another handler. If the answer is no, the attempt's Stopped says why. An error is that of a filter.
func (h *Handler) Ask(ctx context.Context, a *execution.Attempt, question execution.Question) (bool, error) {
	a.Call.Handler, a.Asking = h.Description, question
	if a.Stopped.By != "" {
		a.Stopped = execution.Stop{}
	}
	_, err := h.chain.Reconcile(ctx, a)
	a.Asking = 0
	return err == nil && a.Stopped.By == "", err
}

// Start makes the attempt on a goroutine of its own, which the function may end. The channel is closed when that is
// over and the attempt has an outcome.
func (h *Handler) Start(ctx context.Context, a *execution.Attempt) (done <-chan struct{}) {
	ended := make(chan struct{})
	go func() {
		reserveStack()
		defer close(ended)
		defer a.End()
		began := a.Now()
		defer func() { a.Took = a.Now().Sub(began) }()
		returned := false
		defer func() {
			if !returned {
				// No adapter could judge. With no outcome, the function would be called again at once, for ever.
				a.Outcome = a.Limits.Judge(errGoexit)
			}
			a.Outcome.Trace = a.Call.Trace
		}()
		if _, err := h.chain.Reconcile(ctx, a); err != nil {
			a.Outcome = execution.Outcome{Aborted: true, Err: err}
		}
		returned = true
	}()
	return ended
}

// reserved is how much stack functions get from the start, in bytes.
const reserved = 12 << 10

// reserveStack makes the stack of a goroutine larger while nothing is on it. It would grow anyway, by and by, and each
// time all that is on it would be copied: by then, that are the frames of all adapters and of a decoder.
//
//go:noinline
func reserveStack() {
	var frame [reserved]byte
	runtime.KeepAlive(&frame)
}

// Run is Start, and waits for the end.
func (h *Handler) Run(ctx context.Context, a *execution.Attempt) { <-h.Start(ctx, a) }

// Reconcile makes an attempt, or answers the question that the attempt carries. What came of it is in the attempt: the
// result is always empty. An error is that of a filter.
func (h *Handler) Reconcile(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
	return h.chain.Reconcile(ctx, a)
}

// call is the innermost step: the user's function itself.
func call(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
	return reconcile.Result{}, a.Call.Handler.Call(ctx, &a.Call)
}

// index is the innermost step of an index function: what it says stays in the attempt.
func index(ctx context.Context, a *execution.Attempt) (_ reconcile.Result, err error) {
	a.Entries, a.Keep, err = a.Call.Handler.Index.Call(ctx, &a.Call)
	return reconcile.Result{}, err
}

// act is the innermost step of an acting handler: what it returns stays in the attempt.
func act(ctx context.Context, a *execution.Attempt) (_ reconcile.Result, err error) {
	a.Returned, err = a.Call.Handler.Act(ctx, &a.Call)
	return reconcile.Result{}, err
}
