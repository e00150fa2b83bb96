package handlers_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

type observerKey struct{}

// recordCalls returns an observer that records its calls, and the observer around it.
func recordCalls(name string, calls *[]string) handlers.AttemptObserver {
	return func(ctx context.Context, call *handlers.Invocation) (context.Context, func(string, error)) {
		outside, _ := ctx.Value(observerKey{}).(string)
		*calls = append(*calls, name+" in "+outside+" of "+call.Handler.ID)
		return context.WithValue(ctx, observerKey{}, name), func(outcome string, _ error) {
			*calls = append(*calls, name+" "+outcome)
		}
	}
}

func TestObserverAround(t *testing.T) {
	var calls []string
	outer, inner := recordCalls("outer", &calls), recordCalls("inner", &calls)
	for name, tc := range map[string]struct {
		reason string
		by     handlers.AttemptObserver
		want   []string
	}{
		"Both": {
			"the inner one has the context of the outer one, and ends first", outer.WithInner(inner),
			[]string{"outer in  of fn", "inner in outer of fn", "inner retry", "outer retry"},
		},
		"Outer": {
			"a missing inner observer is ignored", outer.WithInner(nil), []string{"outer in  of fn", "outer retry"},
		},
		"Inner": {
			"a missing outer observer is ignored",
			handlers.AttemptObserver(nil).WithInner(inner), []string{"inner in  of fn", "inner retry"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			calls = nil
			_, ended := tc.by(t.Context(), &handlers.Invocation{Handler: &handlers.Handler{ID: "fn"}})
			ended("retry", nil)
			if d := cmp.Diff(tc.want, calls); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
	if handlers.AttemptObserver(nil).WithInner(nil) != nil {
		t.Error("want nil without observers")
	}
}
