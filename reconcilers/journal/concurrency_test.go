package journal_test

import (
	"fmt"
	"io"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

// TestConcurrentNotes shows that notes and explanations can run concurrently, without partial results.
func TestConcurrentNotes(t *testing.T) {
	h := &handlers.Handler{ID: "h", Reason: cause.Create}
	j := newServingJournal(journal.RetentionLimits{Objects: 3, Entries: 3}, h)
	var all sync.WaitGroup
	for i := range 5 {
		object := types.NamespacedName{Namespace: "ns", Name: fmt.Sprint("w", i)}
		all.Go(func() {
			o := widgetsOf(j).ForObject(object, "u1")
			for n := range 100 {
				o.RecordEvent("MODIFIED", fmt.Sprint(n))
				d := o.StartEvaluation(&cause.Cause{Reason: cause.Create})
				d.AddVerdict(h, execution.Stop{Reason: execution.Finished})
				d.AddToJournal()
				o.RecordAttempt(attemptOf(h, n, execution.Outcome{Err: fmt.Errorf("error %d", n%2)}))
			}
		})
		all.Go(func() {
			for range 100 {
				e, err := j.Explain("widget", object)
				if err == nil {
					err = e.WriteText(io.Discard)
				}
				if n := len(e.History); err != nil || n > 3 {
					t.Errorf("want at most 3 entries, got %d with error %v", n, err)
					return
				}
			}
		})
		all.Go(func() { j.SetLive(newServingState(h)) })
	}
	all.Wait()
}
