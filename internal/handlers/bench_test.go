package handlers_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/benchmarks/objects"
)

// BenchmarkPrematch measures the cost of an event for one handler with each kind of filter that needs no Go type. All
// filters match; Field is a handler with a field and its pattern.
func BenchmarkPrematch(b *testing.B) {
	selector, err := labels.Parse("tier=prod,!paused")
	if err != nil {
		b.Fatal(err)
	}
	all := map[string]*handlers.Handler{
		"None":     {},
		"Selector": {Filters: []handlers.Filter{handlers.MatchLabels(selector)}},
		"Patterns": {Filters: []handlers.Filter{
			handlers.MatchMetadata("labels", "tier", handlers.EqualTo("prod")),
			handlers.MatchMetadata("annotations", "example.org/paused", handlers.IsAbsent),
		}},
		"Field": {Field: diff.Path{"spec"}, Value: handlers.IsPresent},
	}
	for _, o := range objects.All {
		body := o.Tree()
		c := &cause.Cause{Object: jsontext.NewFromValue(body), New: map[string]any{"spec": body["spec"]}}
		for name, h := range all {
			b.Run(o.Name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, ok, err := h.MatchesObject(b.Context(), c); !ok || err != nil {
						b.Fatal(ok, err)
					}
				}
			})
		}
	}
}
