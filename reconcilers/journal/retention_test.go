package journal_test

import (
	"runtime"
	"testing"
	"weak"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// TestObjectsAreLetGo shows that the journal does not keep evaluated objects alive.
func TestObjectsAreLetGo(t *testing.T) {
	kept := journal.New(journal.RetentionLimits{})
	if state := recordEvaluation(kept.ForKind(schema.GroupKind{Kind: "Widget"}, nil)); !isCollected(state) {
		t.Error("the journal keeps an object alive")
	}
	runtime.KeepAlive(kept)
}

// recordEvaluation notes an evaluation of an object without other references, and returns a weak pointer to it.
func recordEvaluation(kind *journal.KindJournal) weak.Pointer[cause.Cause] {
	found := map[string]any{"size": map[string]any{"of": "a mapping"}}
	what := &cause.Cause{Reason: cause.Update, Object: jsontext.NewFromValue(map[string]any{
		"metadata": map[string]any{"name": "one", "uid": "u"}, "spec": found,
	})}
	look := kind.ForBody(what.Body()).StartEvaluation(what)
	look.AddVerdict(&handlers.Handler{ID: "fn", Field: diff.Path{"spec"}, NeedsChange: true},
		execution.Stop{Adapter: "FieldChanged", Reason: execution.Unchanged, Found: found})
	look.AddToJournal()
	return weak.Make(what)
}

func isCollected(state weak.Pointer[cause.Cause]) bool {
	for range 3 {
		runtime.GC()
	}
	return state.Value() == nil
}
