package adapters

import (
	"context"
	"errors"
	"runtime"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/metrics"
)

// Reconciler makes one attempt. The result is in the attempt's outcome.
type Reconciler = reconcile.TypedReconciler[*execution.Attempt]

// Func adapts a function to a Reconciler.
type Func = reconcile.TypedFunc[*execution.Attempt]

// Adapter adds one concern to a Reconciler.
type Adapter func(next Reconciler) Reconciler

// HandlerChain is a registered handler as a Reconciler of attempts: its function, wrapped by the adapters that it
// needs.
type HandlerChain struct {
	// Description is the handler as registered. It must not be modified.
	Description *handlers.Handler

	metrics *metrics.OperatorMetrics // nil measures nothing
	names   []string                 // of the adapters, outermost first
	chain   Reconciler
}

// HandlerIDs returns the ids of the handlers, in their order.
func HandlerIDs(all []*HandlerChain) []string {
	ids := make([]string, 0, len(all))
	for _, h := range all {
		ids = append(ids, h.Description.ID)
	}
	return ids
}

// DescriptionsOf returns the handlers without their adapters, in their order.
func DescriptionsOf(all []*HandlerChain) []*handlers.Handler {
	own := make([]*handlers.Handler, 0, len(all))
	for _, h := range all {
		own = append(own, h.Description)
	}
	return own
}

var _ Reconciler = (*HandlerChain)(nil)

// Families are the handlers of one resource by family, each list in the order of registration.
type Families struct{ Changing, Watching, Background, Indexing, Admitting, Parent, Child, Condition []*HandlerChain }

// errGoexit is the error of a function that ends its goroutine instead of returning, as t.FailNow does in tests.
var errGoexit = errors.New("the function ended its goroutine by runtime.Goexit")

// New makes the Reconciler of a handler from the chain of its family. The description must not change afterwards,
// because the adapters are chosen by it. A nil measured disables the metrics.
func New(description *handlers.Handler, measured *metrics.OperatorMetrics) *HandlerChain {
	h := &HandlerChain{Description: description, metrics: measured}
	family := chains[description.Family]
	var needed []Adapter
	// Leave out the adapters without an effect on this handler: each one costs time at every attempt.
	for _, one := range family.adapters {
		if adapter := one.make(h); adapter != nil {
			needed, h.names = append(needed, adapter), append(h.names, one.name)
		}
	}
	h.chain = ChainAdapters(family.innermost, needed...)
	return h
}

// ChainAdapters wraps the reconciler in the adapters, the first one outermost.
func ChainAdapters(inner Reconciler, adapters ...Adapter) Reconciler {
	for i := len(adapters) - 1; i >= 0; i-- {
		inner = adapters[i](inner)
	}
	return inner
}

// NewSubHandler makes the Reconciler of a sub-handler that the handler's function declares. Its id is the joined id of
// both.
func (h *HandlerChain) NewSubHandler(declared *handlers.Handler) *HandlerChain {
	return New(declared.AsSubHandler(h.Description), h.metrics)
}

// ByFamily groups the handlers by family.
func ByFamily(all []*HandlerChain) (found Families) {
	for _, h := range all {
		switch h.Description.Family {
		case handlers.Changing:
			found.Changing = append(found.Changing, h)
		case handlers.Watching:
			found.Watching = append(found.Watching, h)
		case handlers.Background:
			found.Background = append(found.Background, h)
		case handlers.Indexing:
			found.Indexing = append(found.Indexing, h)
		case handlers.Admitting:
			found.Admitting = append(found.Admitting, h)
		case handlers.Parent:
			found.Parent = append(found.Parent, h)
		case handlers.Child:
			found.Child = append(found.Child, h)
		case handlers.Condition:
			found.Condition = append(found.Condition, h)
		case handlers.Activity: // activities do not belong to a resource
		}
	}
	return found
}

// AdapterNames returns the names of the handler's adapters, outermost first.
func (h *HandlerChain) AdapterNames() []string { return h.names }

// Ask reports whether the function would be called, without calling it. The attempt carries the cause and the context
// of the question: whether the handler was selected, its account, the clock. It can be reused for the next question,
// also for another handler. If the answer is no, the attempt's Stopped has the reason. The error is that of a filter.
func (h *HandlerChain) Ask(ctx context.Context, a *execution.Attempt, question execution.Question) (bool, error) {
	// Asking makes the Answer adapter end the chain before the call.
	a.Call.Handler, a.Question = h.Description, question
	// Clear the answer to the former question.
	if a.Stop.Adapter != "" {
		a.Stop = execution.Stop{}
	}
	_, err := h.chain.Reconcile(ctx, a)
	a.Question = 0
	return err == nil && a.Stop.Adapter == "", err
}

// Start runs the attempt on a goroutine of its own, because the function may end the goroutine. The returned channel is
// closed when the function has returned and the attempt has an outcome.
func (h *HandlerChain) Start(ctx context.Context, a *execution.Attempt) (done <-chan struct{}) {
	ended := make(chan struct{})
	go func() {
		reserveStack()
		defer close(ended)
		// Deferred calls run in reverse order: first the outcome and the duration are set, then the attempt ends, and
		// the channel is closed last.
		defer a.CloseForChanges()
		began := a.Now()
		defer func() { a.Duration = a.Now().Sub(began) }()
		returned := false
		defer func() {
			if !returned {
				// No adapter has set an outcome. Without one, the function would be called again at once, in an endless
				// loop.
				a.Outcome = a.Limits.OutcomeOf(errGoexit)
			}
			a.Outcome.Trace = a.Call.Trace
		}()
		// Only filters and the like return errors here: the function's own errors are part of the outcome.
		if _, err := h.chain.Reconcile(ctx, a); err != nil {
			a.Outcome = execution.Outcome{Aborted: true, Err: err}
		}
		returned = true
	}()
	return ended
}

// initialStackSize is the initial stack size for functions, in bytes. It covers the frames of all adapters and of a
// decoder.
const initialStackSize = 12 << 10

// reserveStack grows the stack of a new goroutine while it is still empty. Otherwise it would grow in steps during the
// call, and each step would copy all frames of the adapters and the decoder.
//
//go:noinline
func reserveStack() {
	var frame [initialStackSize]byte
	runtime.KeepAlive(&frame)
}

// RunAttempt starts the attempt as Start does, and waits until it has ended.
func (h *HandlerChain) RunAttempt(ctx context.Context, a *execution.Attempt) { <-h.Start(ctx, a) }

// Reconcile makes an attempt, or answers the question that the attempt carries. The outcome is part of the attempt, and
// the result is always empty. The error is that of a filter.
func (h *HandlerChain) Reconcile(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
	return h.chain.Reconcile(ctx, a)
}

// call is the innermost step of most families: it calls the user's function.
func call(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
	return reconcile.Result{}, a.Call.Handler.Call(ctx, &a.Call)
}

// callIndex is the innermost step of index functions. The returned entries are stored in the attempt.
func callIndex(ctx context.Context, a *execution.Attempt) (_ reconcile.Result, err error) {
	a.Entries, a.KeepEntries, err = a.Call.Handler.Index.Call(ctx, &a.Call)
	return reconcile.Result{}, err
}

// callActivity is the innermost step of activity handlers. The returned value is stored in the attempt.
func callActivity(ctx context.Context, a *execution.Attempt) (_ reconcile.Result, err error) {
	a.ActivityResult, err = a.Call.Handler.ActivityFunc(ctx, &a.Call)
	return reconcile.Result{}, err
}
