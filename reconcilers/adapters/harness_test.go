package adapters_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/internal/metrics"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
)

type object = map[string]any

var errOrdinary = errors.New("boo")

// undecodable is the error of a typed handler whose object does not decode.
type undecodable struct{ error }

func (undecodable) Undecodable() bool { return true }

// permanent is an error that forbids a retry.
type permanent struct{ error }

func (permanent) Permanent() bool { return true }

// attemptOf returns the first attempt of a function for an object that was just created.
func attemptOf(call handlers.Func) *execution.Attempt {
	h := &handlers.Handler{ID: "fn", Call: call}
	return &execution.Attempt{
		Call: handlers.Invocation{
			Handler: h, Object: object{},
			Cause: &cause.Cause{Reason: cause.Create, Object: jsontext.NewFromValue(object{"kind": "KopfExample"})},
		},
		Limits: execution.Limits{ID: h.ID, Mode: handlers.ErrorsTemporary},
		Now:    time.Now,
	}
}

func returning(err error) handlers.Func {
	return func(context.Context, *handlers.Invocation) error { return err }
}

// calling returns the innermost step of a chain with other adapters than the standard ones: it calls the function.
func calling() adapters.Reconciler {
	return adapters.Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
		return reconcile.Result{}, a.Call.Handler.Call(ctx, &a.Call)
	})
}

// attempt runs the chain and returns the outcome. The chain must return an empty result and no error.
func attempt(ctx context.Context, t *testing.T, chain adapters.Reconciler, a *execution.Attempt) execution.Outcome {
	t.Helper()
	result, err := chain.Reconcile(ctx, a)
	if err != nil || result != (reconcile.Result{}) {
		t.Errorf("the chain returned %v, error %v", result, err)
	}
	return a.Outcome
}

// outcome is a comparable outcome: errors are texts.
type outcome struct {
	Final, Aborted, Blocked bool
	Delay                   time.Duration // -1 for none
	Err                     string
}

func outcomeOf(o execution.Outcome) outcome {
	got := outcome{Final: o.Final, Aborted: o.Aborted, Blocked: o.Blocked, Delay: -1}
	if o.Delay != nil {
		got.Delay = *o.Delay
	}
	if o.Err != nil {
		got.Err = o.Err.Error()
	}
	return got
}

// logging returns a context that collects the logged lines as JSON.
func logging(ctx context.Context) (context.Context, *[]string) {
	lines := &[]string{}
	log := funcr.NewJSON(func(line string) { *lines = append(*lines, line) }, funcr.Options{})
	return logf.IntoContext(ctx, log), lines
}

// newChains returns the Reconcilers of handlers, as an operator sets them up.
func newChains(all ...*handlers.Handler) []*adapters.HandlerChain {
	list := make([]*adapters.HandlerChain, 0, len(all))
	for _, h := range all {
		list = append(list, adapters.New(h, nil))
	}
	return list
}

// of returns the handlers of one family.
func of(family handlers.Family, all []*handlers.Handler) []*adapters.HandlerChain {
	return slices.DeleteFunc(newChains(all...),
		func(h *adapters.HandlerChain) bool { return h.Description.Family != family })
}

// withReason sets the facts of a cause that follow from its reason, for causes of vectors and tests that have only a
// reason.
func withReason(c *cause.Cause, reason cause.Reason) *cause.Cause {
	c.Reason, c.Gone, c.HasFinalizer = reason, reason == cause.Gone, reason == cause.Delete
	c.Deleting = c.Deleting || reason == cause.Delete || reason == cause.Free
	c.Handled, c.Changed = reason != cause.Create, reason == cause.Update
	return c
}

// wholeChain returns the chain of the attempt's own handler. The limits and the former attempts of the attempt become
// those of the handler.
func wholeChain(measured *metrics.OperatorMetrics) adapters.Reconciler {
	return adapters.Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
		return setUp(a, measured).Reconcile(ctx, a)
	})
}

func setUp(a *execution.Attempt, measured *metrics.OperatorMetrics) *adapters.HandlerChain {
	a.Selected, a.Account.Retries = true, max(a.Limits.Retries, a.Call.Retry)
	if a.Limits.Runtime > 0 {
		a.Account.Started = a.Now().Add(-a.Limits.Runtime)
	}
	a.Call.Handler.Policy = a.Limits.Policy
	return adapters.New(a.Call.Handler, measured)
}
