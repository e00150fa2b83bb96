package journal_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

// TestSharing shows that equal evaluations and writes of different objects share memory, and that others do not.
func TestSharing(t *testing.T) {
	until := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	look := func(reason cause.Reason, stop execution.Stop) func(o journal.ObjectJournal) {
		return func(o journal.ObjectJournal) {
			d := o.StartEvaluation(&cause.Cause{Reason: reason, Object: jsontext.NewFromValue(body)})
			d.AddVerdict(newDemandingHandler(), stop)
			d.AddToJournal()
		}
	}
	write := func(by, annotation string) func(o journal.ObjectJournal) {
		merge := map[string]any{"metadata": map[string]any{"annotations": map[string]any{annotation: "x"}}}
		return func(o journal.ObjectJournal) {
			o.RecordWrite(by, patching.Patch{Merge: merge}, body, patching.WriteResult{Body: body}, nil)
		}
	}
	called := execution.Stop{}
	asleep := execution.Stop{Adapter: "Progress", Reason: execution.Asleep, Until: until}
	later := execution.Stop{Adapter: "Progress", Reason: execution.Asleep, Until: until.Add(time.Hour)}
	for name, c := range map[string]struct {
		reason     string
		one, other func(o journal.ObjectJournal)
		shared     bool
	}{
		"the same look": {"equal evaluations are shared", look("create", called), look("create", called), true},
		"another reason": {"evaluations with another cause are not shared",
			look("create", called), look("update", called), false},
		"another verdict": {"evaluations with another verdict are not shared",
			look("create", called), look("create", asleep), false},
		"another time": {"evaluations with another due time are not shared",
			look("create", asleep), look("create", later), false},
		"the same write": {"equal writes are shared", write("", "a"), write("", "a"), true},
		"another write":  {"writes of other paths are not shared", write("", "a"), write("", "b"), false},
		"another writer": {"writes by different handlers are not shared", write("", "a"), write("fn", "a"), false},
		"a look, a write": {"a write is not shared with an evaluation before it",
			look("create", called), write("", "a"), false},
		"a write, a look": {"an evaluation is not shared with a write before it",
			write("", "a"), look("create", called), false},
		"the same resuming": {"equal evaluations of a resume are shared",
			look("resume", called), look("resume", called), true},
	} {
		t.Run(name, func(t *testing.T) {
			j := newServingJournal(journal.RetentionLimits{})
			kind := widgetsOf(j)
			var noted [2]journal.Entry
			for i, note := range []func(o journal.ObjectJournal){c.one, c.other} {
				key := types.NamespacedName{Namespace: "ns", Name: []string{"a", "b"}[i]}
				note(kind.ForObject(key, "u"))
				noted[i] = explainObject(t, j, key).History[0]
			}
			shared := noted[0].Evaluation != nil && noted[0].Evaluation == noted[1].Evaluation ||
				noted[0].Write != nil && noted[0].Write == noted[1].Write
			if shared != c.shared {
				t.Errorf("%s: shared: %v", c.reason, shared)
			}
		})
	}
}
