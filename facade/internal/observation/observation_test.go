package observation_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/observation"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

type seen struct{}

// noting is an observer that notes what it is told, and in whose context.
func noting(name string, told *[]string) observation.Observer {
	return func(ctx context.Context, call *handlers.Invocation) (context.Context, func(string, error)) {
		outside, _ := ctx.Value(seen{}).(string)
		*told = append(*told, name+" in "+outside+" of "+call.Handler.ID)
		return context.WithValue(ctx, seen{}, name), func(outcome string, _ error) {
			*told = append(*told, name+" "+outcome)
		}
	}
}

func TestBeside(t *testing.T) {
	var told []string
	outer, inner := noting("outer", &told), noting("inner", &told)
	for name, tc := range map[string]struct {
		reason string
		by     observation.Observer
		want   []string
	}{
		"Both": {
			"the inner one has the context of the outer one, and ends first", observation.Beside(outer, inner),
			[]string{"outer in  of fn", "inner in outer of fn", "inner retry", "outer retry"},
		},
		"Outer": {
			"nil is nobody", observation.Beside(outer, nil), []string{"outer in  of fn", "outer retry"},
		},
		"Inner": {
			"nil is nobody", observation.Beside(nil, inner), []string{"inner in  of fn", "inner retry"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			told = nil
			_, ended := tc.by(t.Context(), &handlers.Invocation{Handler: &handlers.Handler{ID: "fn"}})
			ended("retry", nil)
			if d := cmp.Diff(tc.want, told); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
	if observation.Beside(nil, nil) != nil {
		t.Error("nobody observes, and attempts pay for it")
	}
	if observation.From(observation.Into(t.Context(), outer)) == nil || observation.From(t.Context()) != nil {
		t.Error("an observer travels in a context")
	}
}
