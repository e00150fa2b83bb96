package kopf_test

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
)

// largeSpec returns the spec of an object of about 2 KB of JSON.
func largeSpec() map[string]any {
	parts := []any{}
	for i := range 20 {
		parts = append(
			parts, map[string]any{"name": fmt.Sprint("part-", i), "count": int64(i), "notes": []any{"one", "two"}},
		)
	}
	return map[string]any{
		"owner": "ann", "size": int64(3), "tags": []any{"a", "b"}, "parts": parts, "extra": map[string]any{"k": "v"},
	}
}

// BenchmarkCreation measures one attempt of one create handler, from the cause to the outcome.
func BenchmarkCreation(b *testing.B) {
	b.Run("typed", func(b *testing.B) {
		benchmarkCreation(b, func(op *kopf.Operator) kopf.Selection[*Widget] {
			return kopf.For(op, &Widget{})
		})
	})
	b.Run("unstructured", func(b *testing.B) {
		benchmarkCreation(b, func(op *kopf.Operator) kopf.Selection[*rawObject] {
			return kopf.ForResource(op, "example.org/v1", "widgets")
		})
	})
}

func benchmarkCreation[T client.Object](b *testing.B, selected func(op *kopf.Operator) kopf.Selection[T]) {
	defer kopf.LookAtFirstCallsOnly()()
	op := kopf.New("test.example.org")
	selected(op).OnCreate("fn", func(context.Context, *kopf.Change[T]) error { return nil })
	handler := plannedHandler(b, op)
	reconciler := adapters.New(handler, nil)
	object := body(largeSpec())
	b.ReportAllocs()
	for b.Loop() {
		what := cause.Detect(cause.Observation{Body: object, New: map[string]any{"spec": object["spec"]}})
		a := execution.NewAttempt(handler, what, object)
		if _, err := reconciler.Reconcile(b.Context(), a); err != nil || a.Outcome.Err != nil {
			b.Fatal(err, a.Outcome.Err)
		}
	}
}

// BenchmarkFilters measures ten filter functions on one object.
func BenchmarkFilters(b *testing.B) {
	op := kopf.New("test.example.org")
	widgets := kopf.For(op, &Widget{})
	for range 10 {
		widgets = widgets.When(func(_ context.Context, w *Widget) bool { return w.Spec.Owner == "ann" })
	}
	widgets.OnCreate("fn", succeed)
	handler := plannedHandler(b, op)
	object := body(largeSpec())
	b.ReportAllocs()
	for b.Loop() {
		if _, ok, err := handler.MatchesObject(b.Context(), &cause.Cause{Object: jsontext.NewFromValue(object)}); !ok ||
			err != nil {
			b.Fatal(ok, err)
		}
	}
}

func plannedHandler(b *testing.B, op *kopf.Operator) *handlers.Handler {
	b.Helper()
	scheme := runtime.NewScheme()
	if err := addWidgets(scheme); err != nil {
		b.Fatal(err)
	}
	plan, err := kopf.Plan(op, scheme)
	if err != nil {
		b.Fatal(err)
	}
	return plan[0].Handler
}
