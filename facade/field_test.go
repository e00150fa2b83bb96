package kopf_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// TestValidLabelsAndAnnotations shows that unusual but valid labels and annotations are accepted.
func TestValidLabelsAndAnnotations(t *testing.T) {
	op := kopf.New("test.example.org")
	kopf.For(op, &Widget{}).WithLabel("app.kubernetes.io/name", "").WithLabel("a", kopf.Absent).
		WithAnnotation("Example.org/A", "any text, of any length").OnCreate("fn", succeed)
	if _, err := kopf.Plan(op, newScheme(t)); err != nil {
		t.Errorf("an empty label and any text in an annotation are valid: got %v", err)
	}
}

// TestFieldIDs shows that the ids of handlers include their fields.
func TestFieldIDs(t *testing.T) {
	op := kopf.New("test.example.org")
	w := kopf.For(op, &Widget{})
	w.OnField("a", "spec.size", succeed)
	w.OnField("b", kopf.FieldPath("metadata", "labels", "app.kubernetes.io/name"), succeed)
	w.OnField("c", "spec.extra.anything", succeed)
	w.OnField("d", "status", succeed)
	w.OnUpdate("e", succeed, kopf.InField("spec.weight.inside"), kopf.OldValue(kopf.Absent))
	plan := planOf(t, op)
	var got []string
	for _, r := range plan {
		got = append(got, r.Handler.ID)
		if !r.Handler.NeedsChange || r.Handler.Field == nil {
			t.Errorf("%s is called only for changes of its field: got %+v", r.Handler.ID, r.Handler)
		}
	}
	want := []string{
		"a/spec.size", "b/metadata.labels.app.kubernetes.io/name", "c/spec.extra.anything", "d/status",
		"e/spec.weight.inside",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the ids of handlers include their fields: -want, +got:\n%s", d)
	}
}

// fieldCall calls a handler of spec.size with these old and new essences.
func fieldCall(t *testing.T, fn kopf.ChangeFunc[*Widget], old, now map[string]any) *execution.Attempt {
	t.Helper()
	op := kopf.New("test.example.org")
	kopf.For(op, &Widget{}).OnField("fn", "spec.size", fn)
	return call(t, op, body(map[string]any{"size": int64(2)}), old, func(a *execution.Attempt) {
		a.Call.Cause = cause.Detect(cause.Observation{Body: a.Call.Object, Old: old, New: now})
	})
}

// TestFieldValues shows that FieldChange returns the old and the new value of the handler's field.
func TestFieldValues(t *testing.T) {
	size := func(v any) map[string]any { return map[string]any{"spec": map[string]any{"size": v}} }
	var before, after *int
	var changes string
	see := func(_ context.Context, c *Change) error {
		before, after = kopf.FieldChange[int](c)
		changes = fmt.Sprint(c.Diff)
		return nil
	}
	if a := fieldCall(t, see, size(int64(1)), size(int64(2))); a.Outcome.Err != nil || *before != 1 || *after != 2 {
		t.Errorf("an update has both values: got %v, %v, error %v", before, after, a.Outcome.Err)
	}
	if !strings.Contains(changes, "1 -> 2") || strings.Contains(changes, "spec") {
		t.Errorf("the diff is relative to the field: got %s", changes)
	}
	if a := fieldCall(t, see, nil, size(int64(2))); a.Outcome.Err != nil || before != nil || *after != 2 {
		t.Errorf("a creation has no old value: got %v, %v, error %v", before, after, a.Outcome.Err)
	}
	if a := fieldCall(
		t, see, size("large"), size(int64(2)),
	); a.Outcome.Err == nil || !strings.Contains(a.Outcome.Err.Error(), "spec.size") {
		t.Errorf("a value of another type fails the handler with the name of the field: got %v", a.Outcome.Err)
	}
	op := newCreationOperator(see)
	if a := call(t, op, body(nil), nil); a.Outcome.Err == nil || !strings.Contains(
		a.Outcome.Err.Error(), "has no field",
	) {
		t.Errorf("a handler without a field has no values: got %v", a.Outcome.Err)
	}
}

// TestSubsInAFieldOfAnUpdate shows that a sub-handler with a field is called only for changes of this field.
func TestSubsInAFieldOfAnUpdate(t *testing.T) {
	op := kopf.New("test.example.org")
	kopf.For(op, &Widget{}).OnUpdate("u", succeed)
	plan := planOf(t, op)
	sub := (&handlers.Handler{ID: "s", Field: diff.Path{"spec", "size"}}).AsSubHandler(plan[0].Handler)
	spec := func(size, weight int64) map[string]any {
		return map[string]any{"spec": map[string]any{"size": size, "weight": weight}}
	}
	for changed, o := range map[string]cause.Observation{
		"spec.size":   {Old: spec(1, 1), New: spec(2, 1)},
		"spec.weight": {Old: spec(1, 1), New: spec(1, 2)},
	} {
		selected, err := adapters.Select(t.Context(), reconcilersOf(sub), cause.Detect(o), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := len(selected) == 1, changed == "spec.size"; got != want {
			t.Errorf(
				"a change of %s calls a sub-handler of spec.size: got %v, want %v", changed, got,
				want,
			)
		}
	}
}

// TestOldValuesOfSeveralReasons shows that OldValue applies only to the updates of a handler of several reasons.
func TestOldValuesOfSeveralReasons(t *testing.T) {
	op := kopf.New("test.example.org")
	kopf.For(op, &Widget{}).On("a", []kopf.Reason{kopf.ReasonCreate, kopf.ReasonUpdate}, succeed,
		kopf.InField("spec.size"), kopf.OldValue(1))
	plan := planOf(t, op)
	if create, update := plan[0].Handler, plan[1].Handler; create.From != nil || update.From == nil ||
		create.ID != "a/spec.size" || update.ID != create.ID {
		t.Errorf("OldValue applies to updates only, InField to both: got %+v, %+v", create, update)
	}
}
