package journal_test

import (
	"fmt"
	"runtime"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

// BenchmarkNote measures one note of each sort, with full pages of many objects in turn.
func BenchmarkNote(b *testing.B) {
	own := make([]*handlers.Handler, 5)
	for i := range own {
		own[i] = newDemandingHandler()
		own[i].ID = fmt.Sprint("handler", i)
	}
	stops := []execution.Stop{
		{}, {Adapter: "Created", Reason: execution.OtherReason, Expected: cause.Create, Found: cause.Update},
		{Adapter: "Filters", Reason: execution.FilteredOut},
		{Adapter: "Field", Reason: execution.Unchanged, Found: int64(3)},
		{Adapter: "State", Reason: execution.Finished},
	}
	c := &cause.Cause{Reason: cause.Update, Object: jsontext.NewFromValue(body), Diff: diffOf("size")}
	done := attemptOf(own[0], 0, execution.Outcome{Final: true})
	notes := map[string]func(o journal.ObjectJournal, n int){
		"event": func(o journal.ObjectJournal, _ int) { o.RecordEvent("MODIFIED", "12345") },
		"look with 5 verdicts": func(o journal.ObjectJournal, _ int) {
			d := o.StartEvaluation(c)
			for i, h := range own {
				d.AddVerdict(h, stops[i])
			}
			d.AddToJournal()
		},
		"attempt": func(o journal.ObjectJournal, _ int) { o.RecordAttempt(done) },
		"nothing": func(journal.ObjectJournal, int) {},
	}
	for name, note := range notes {
		b.Run(name, func(b *testing.B) {
			j := journal.New(journal.RetentionLimits{})
			kind := widgetsOf(j)
			objects := make([]journal.ObjectJournal, 1000)
			for i := range objects {
				objects[i] = kind.ForObject(types.NamespacedName{Namespace: "ns", Name: fmt.Sprint("w", i)}, "u1")
				for n := range journal.DefaultEntries {
					objects[i].RecordEvent(fmt.Sprint("T", n), "1")
				}
			}
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				note(objects[n%len(objects)], n)
			}
		})
	}
}

// BenchmarkRemembered measures the memory of the journal for objects that were created and updated, with few and with
// many handlers.
func BenchmarkRemembered(b *testing.B) {
	for _, count := range []int{3, 100} {
		own := make([]*handlers.Handler, count)
		for i := range own {
			own[i] = newDemandingHandler()
			own[i].ID = fmt.Sprint("handler", i)
		}
		b.Run(fmt.Sprint(count, " handlers"), func(b *testing.B) {
			for b.Loop() {
				j, before := journal.New(journal.RetentionLimits{}), liveHeapSize()
				kind := widgetsOf(j)
				for i := range journal.DefaultObjects {
					recordChanges(kind.ForObject(types.NamespacedName{Namespace: "ns", Name: fmt.Sprint("w", i)}, "u1"),
						own)
				}
				b.ReportMetric(float64(liveHeapSize()-before)/journal.DefaultObjects, "bytes/object")
				runtime.KeepAlive(j)
			}
		})
	}
}

// recordChanges notes the creation and an update of an object, for which all handlers are selected and the first one is
// called.
func recordChanges(o journal.ObjectJournal, own []*handlers.Handler) {
	annotations := map[string]any{
		"example.org/last-handled-configuration": "{}", "example.org/kopf-managed": "yes",
		"example.org/handled-uid": "u1",
	}
	patch := patching.Patch{Merge: map[string]any{"metadata": map[string]any{"annotations": annotations}}}
	for _, reason := range []cause.Reason{cause.Create, cause.Noop, cause.Update, cause.Noop} {
		o.RecordEvent("MODIFIED", "12345")
		look := o.StartEvaluation(&cause.Cause{Reason: reason, Object: jsontext.NewFromValue(body)})
		if reason == cause.Noop { // no handler is evaluated
			look.AddToJournal()
			continue
		}
		for _, h := range own {
			look.AddVerdict(h, execution.Stop{})
		}
		look.AddToJournal()
		o.RecordAttempt(attemptOf(own[0], 0, execution.Outcome{Final: true}))
		o.RecordWrite("", patch, body, patching.WriteResult{Body: body}, nil)
	}
}

// liveHeapSize returns the size of the live heap.
func liveHeapSize() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
