package adapters_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/benchmarks/objects"
)

// BenchmarkInterestInAndSelect measures the cost of an event: deciding whether any handler matches the object, and
// selecting the handlers to call, with ten handlers that filter by labels, some of them for a field.
func BenchmarkInterestInAndSelect(b *testing.B) {
	selector, err := labels.Parse("tier=prod,!paused")
	if err != nil {
		b.Fatal(err)
	}
	all := make([]*handlers.Handler, 10)
	for i := range all {
		all[i] = &handlers.Handler{
			ID: "handler_" + string(rune('a'+i)), Reason: []cause.Reason{
				cause.Create, cause.Update, cause.Delete, "",
			}[i%4],
			Filters: []handlers.Filter{handlers.MatchLabels(selector)}, FunctionKey: i,
		}
		if i%4 == 3 {
			all[i].Field, all[i].NeedsChange = diff.Path{"spec"}, true
		}
	}
	made := newChains(all...)
	for _, o := range objects.All {
		body, before := o.Changed(), o.Tree()
		updated := cause.Detect(cause.Observation{
			Body: body, Old: object{"spec": before["spec"]}, New: object{"spec": body["spec"]},
		})
		b.Run(o.Name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := adapters.InterestIn(b.Context(), made, updated, nil); err != nil {
					b.Fatal(err)
				}
				if selected, err := adapters.Select(b.Context(), made, updated, nil); err != nil || len(selected) != 5 {
					b.Fatalf("got %d handlers, error %v", len(selected), err)
				}
			}
		})
	}
}
