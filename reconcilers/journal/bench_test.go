package journal_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

// BenchmarkNote is what the journal costs for each thing that happens: with full pages of many objects, by turns.
func BenchmarkNote(b *testing.B) {
	own := make([]*handlers.Handler, 5)
	for i := range own {
		own[i] = demanding()
		own[i].ID = fmt.Sprint("handler", i)
	}
	stops := []execution.Stop{
		{}, {By: "Created", Why: execution.OtherReason, Expected: cause.Create, Found: cause.Update},
		{By: "Filters", Why: execution.FilteredOut}, {By: "Field", Why: execution.Unchanged, Found: int64(3)},
		{By: "State", Why: execution.Finished},
	}
	c := &cause.Cause{Reason: cause.Update, Body: body, Diff: differing("size")}
	done := attemptOf(own[0], 0, execution.Outcome{Final: true})
	notes := map[string]func(o journal.Object, n int){
		"event": func(o journal.Object, _ int) { o.Event("MODIFIED", "12345") },
		"look with 5 verdicts": func(o journal.Object, _ int) {
			d := o.Look(c)
			for i, h := range own {
				d.Verdict(h, stops[i])
			}
			d.Note()
		},
		"attempt": func(o journal.Object, _ int) { o.Attempt(done) },
		"nothing": func(journal.Object, int) {},
	}
	for name, note := range notes {
		b.Run(name, func(b *testing.B) {
			j := journal.New(journal.Limits{})
			kind := widgetsOf(j)
			objects := make([]journal.Object, 1000)
			for i := range objects {
				objects[i] = kind.Object(types.NamespacedName{Namespace: "ns", Name: fmt.Sprint("w", i)}, "u1")
				for n := range journal.DefaultEntries {
					objects[i].Event(fmt.Sprint("T", n), "1")
				}
			}
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				note(objects[n%len(objects)], n)
			}
		})
	}
}
