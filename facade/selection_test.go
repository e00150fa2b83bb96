package kopf_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// matchingHandlerIDs returns the ids of the operator's handlers that match the object.
func matchingHandlerIDs(t *testing.T, op *kopf.Operator, what *cause.Cause) (ids []string) {
	t.Helper()
	plan := planOf(t, op)
	for _, r := range plan {
		_, ok, err := r.Handler.MatchesObject(t.Context(), what)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			ids = append(ids, r.Handler.ID)
		}
	}
	return ids
}

// TestDerivedSelectionsDoNotAlias shows that selections derived from one selection do not share their filters.
func TestDerivedSelectionsDoNotAlias(t *testing.T) {
	op := kopf.New("test.example.org")
	named := func(name string) func(context.Context, *Widget) bool {
		return func(_ context.Context, w *Widget) bool { return w.Name == name }
	}
	always := func(context.Context, *Widget) bool { return true }
	// With room left in the array, appending twice to the same slice writes into the same place.
	base := kopf.For(op, &Widget{}).When(always).When(always).When(always)
	mine, other := base.When(named("w1")), base.When(named("w2"))
	mineChanges, otherChanges := base.When(named("w1")), base.When(named("w2"))
	base.OnCreate("base", succeed)
	mine.OnCreate("mine", succeed)
	other.OnCreate("other", succeed)
	mineChanges.OnCreate("mine-changes", succeed)
	otherChanges.OnCreate("other-changes", succeed)

	got := matchingHandlerIDs(t, op, &cause.Cause{Object: jsontext.NewFromValue(body(nil))})
	if d := cmp.Diff([]string{"base", "mine", "mine-changes"}, got); d != "" {
		t.Errorf("a derived selection must not change another one: -want, +got:\n%s", d)
	}
}

// TestFilters shows that each handler is selected by its own filters.
func TestFilters(t *testing.T) {
	grown := func(_ context.Context, c *Change) bool { return c.Object.Spec.Size > c.Old.Spec.Size }
	op := kopf.New("test.example.org")
	w := kopf.For(op, &Widget{})
	w.MatchingLabels("tier=prod,!paused").OnCreate("prod", succeed)
	w.MatchingLabels("tier in (test)").OnCreate("test", succeed)
	w.MatchingAnnotations("owner").OnCreate("owned", succeed)
	w.MatchingAnnotations("owner=bob").OnCreate("bobs", succeed)
	w.When(func(_ context.Context, w *Widget) bool { return w.Spec.Size > 2 }).OnCreate("large", succeed)
	w.OnUpdate("grown", succeed, kopf.WhenChange(grown))
	w.MatchingLabels("tier=test").OnUpdate("grown-test", succeed, kopf.WhenChange(grown))
	w.OnUpdate("changed", succeed, kopf.WhenChange(
		func(_ context.Context, c *Change) bool { return c.Reason == kopf.ReasonUpdate && len(c.Diff) == 1 },
	))

	object := body(map[string]any{"size": int64(3)})
	metadata := object["metadata"].(map[string]any)
	metadata["labels"] = map[string]any{"tier": "prod"}
	metadata["annotations"] = map[string]any{"owner": "ann"}
	got := matchingHandlerIDs(t, op, &cause.Cause{
		Reason: cause.Update, Object: jsontext.NewFromValue(object),
		Old:  map[string]any{"spec": map[string]any{"size": int64(1)}},
		Diff: diff.Diff{{Op: diff.Change, Path: diff.Path{"spec", "size"}, Old: int64(1), New: int64(3)}},
	})
	if d := cmp.Diff([]string{"prod", "owned", "large", "grown", "changed"}, got); d != "" {
		t.Errorf("the handlers whose filters match: -want, +got:\n%s", d)
	}
}

// TestFiltersThatFail shows that a filter that cannot decode the object is an error.
func TestFiltersThatFail(t *testing.T) {
	cases := map[string]struct {
		reason   string
		register func(w kopf.Selection[*Widget])
		want     string
	}{
		"undecodable object": {"an object that the filter cannot decode is an error that names the field",
			func(w kopf.Selection[*Widget]) {
				w.When(func(context.Context, *Widget) bool { return true }).OnCreate("a", succeed)
			},
			`object ns/w1 does not fit into *kopf_test.Widget` +
				`: field spec.size: string cannot be decoded into a Go int32`},
		"undecodable object of a change": {"an object that WhenChange cannot decode is an error that names the field",
			func(w kopf.Selection[*Widget]) {
				w.OnCreate("a", succeed, kopf.WhenChange(func(context.Context, *Change) bool { return true }))
			},
			`field spec.size`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org")
			c.register(kopf.For(op, &Widget{}))
			plan := planOf(t, op)
			wrong := &cause.Cause{Object: jsontext.NewFromValue(body(map[string]any{"size": "three"}))}
			_, _, err := plan[0].Handler.MatchesObject(t.Context(), wrong)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s\nwant %q in the error, got: %v", c.reason, c.want, err)
			}
		})
	}
}

// TestFiltersOnlyRead shows that a filter that writes is an error.
func TestFiltersOnlyRead(t *testing.T) {
	for name, act := range map[string]func(c *Change){
		"patch":  func(c *Change) { c.Patch(func(*Widget) {}) },
		"result": func(c *Change) { c.SetResult(1) },
		"event":  func(c *Change) { c.Info("Reason", "message") },
	} {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org")
			kopf.For(op, &Widget{}).OnCreate("a", succeed, kopf.WhenChange(
				func(_ context.Context, c *Change) bool { act(c); return true },
			))
			plan := planOf(t, op)
			nothing := &cause.Cause{Object: jsontext.NewFromValue(body(nil))}
			if _, _, err := plan[0].Handler.MatchesObject(t.Context(), nothing); err == nil {
				t.Error("a write of a filter, which would be lost, must be an error")
			}
		})
	}
}
