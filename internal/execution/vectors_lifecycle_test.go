package execution_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

var lifecycles = map[string]handlers.Lifecycle{
	"asap": handlers.ASAP, "one_by_one": handlers.OneByOne, "all_at_once": handlers.AllAtOnce,
	"randomized": handlers.Randomized, "shuffled": handlers.Shuffled,
}

func TestVectorsLifecycle(t *testing.T) {
	vectors.Run(t, "lifecycle", func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		vectors.Known(t, input, "lifecycle", "handlers", "retries")
		lifecycle, ok := lifecycles[input.Text("lifecycle", "asap")]
		if !ok {
			t.Fatalf("unknown lifecycle %v in the vectors", input["lifecycle"])
		}
		var due []*execution.HandlerState
		for _, item := range input.List("handlers") {
			id, _ := item.(string)
			retries, _ := input.Mapping("retries")[id].(int64)
			due = append(due, &execution.HandlerState{ID: id, Retries: int(retries)})
		}
		plan := []any{}
		picked, err := execution.PickHandlers(t.Context(), lifecycle, due)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range picked {
			plan = append(plan, entry.ID)
		}
		expected := vectors.Known(t, want.Value, "plan", "count", "one_of")
		if expected["plan"] != nil {
			if d := cmp.Diff(expected["plan"], any(plan)); d != "" {
				t.Errorf("-want, +got:\n%s", d)
			}
			return
		}
		if int64(len(plan)) != expected["count"] {
			t.Errorf("got %v, want %v of them", plan, expected["count"])
		}
		for _, id := range plan {
			if !slices.Contains(expected.List("one_of"), id) {
				t.Errorf("got %v, want it among %v", id, expected["one_of"])
			}
		}
	})
}
