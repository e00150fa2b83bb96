package adapters_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
)

type observed struct{}

func TestObservation(t *testing.T) {
	var told []string
	seen := any(nil)
	h := &handlers.Handler{
		ID: "fn", Family: handlers.Watching,
		Call: func(ctx context.Context, _ *handlers.Invocation) error {
			seen = ctx.Value(observed{})
			return errors.New("not yet")
		},
		Observe: func(ctx context.Context, call *handlers.Invocation) (context.Context, func(string, error)) {
			told, call.Trace = append(told, "began "+call.Handler.ID), "of the first"
			return context.WithValue(ctx, observed{}, true), func(outcome string, err error) {
				told = append(told, outcome+": "+err.Error())
			}
		},
	}
	h.Policy.Errors = handlers.ErrorsPermanent
	a := execution.NewAttempt(h, &cause.Cause{}, nil)
	adapters.New(h, nil).RunAttempt(t.Context(), a)
	if diff := cmp.Diff([]string{"began fn", "failure: not yet"}, told); diff != "" {
		t.Errorf("calls of the observer (-want, +got):\n%s", diff)
	}
	if seen != true {
		t.Errorf("the function must get the context of the observer")
	}

	told = nil
	a = execution.NewAttempt(h, &cause.Cause{}, nil)
	called, err := adapters.New(h, nil).Ask(t.Context(), a, execution.Selection)
	if !called || err != nil || told != nil {
		t.Errorf("the question returned %t, %v and called the observer with %v, want no call", called, err, told)
	}
	h.Call = func(context.Context, *handlers.Invocation) error { runtime.Goexit(); return nil }
	a = execution.NewAttempt(h, &cause.Cause{}, nil)
	adapters.New(h, nil).RunAttempt(t.Context(), a)
	if d := cmp.Diff([]string{
		"began fn", "failure: the function ended its goroutine by runtime.Goexit",
	}, told); d != "" || a.Outcome.Trace != "of the first" {
		t.Errorf("calls of the observer for a function that does not return (-want, +got):\n%s\nthe trace is %q", d,
			a.Outcome.Trace)
	}
	sub := (&handlers.Handler{ID: "part"}).AsSubHandler(h)
	if sub.Observe == nil {
		t.Errorf("sub-handlers must have the observer of their parent")
	}
}
