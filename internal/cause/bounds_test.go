package cause_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/asciijson"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

func TestUnreachableFieldsAreListed(t *testing.T) {
	lens := newLens(
		diff.Path{"spec", "a", "b"}, diff.Path{"status", "l", "0"}, diff.Path{"spec", "a", "b"},
		diff.Path{"status", "null", "x"}, diff.Path{"status", "absent", "x"}, diff.Path{"status", "l"},
		diff.Path{"spec", "a", "c"},
	)
	body := object{"spec": object{"a": int64(1)}, "status": object{"l": []any{int64(1)}, "null": nil}}
	want := []diff.Path{{"spec", "a", "b"}, {"status", "l", "0"}, {"spec", "a", "c"}}
	if d := cmp.Diff(want, lens.UnreachableFields(body)); d != "" {
		t.Errorf("want fields within a scalar or a list, each once, and not fields that are absent: -want, +got:\n%s",
			d)
	}
}

// TestDigestsOfNumbers shows that digests distinguish the same numbers as comparisons do, at the limits of integers and
// floats.
func TestDigestsOfNumbers(t *testing.T) {
	for name, tc := range map[string]struct {
		reason      string
		before, now any
		same        bool
	}{
		"Huge": {"floats beyond all integers differ from each other", 1e300, 2e300, false},
		"Least": {"the least integer equals the float of the same value", int64(math.MinInt64),
			float64(math.MinInt64), true},
		"AboveAll": {"the float 2^63 exceeds all integers and differs from the least one", int64(math.MinInt64),
			float64(1 << 63), false},
		"Negative": {"negative floats beyond all integers differ from each other", -1e300, -2e300, false},
	} {
		_, stored := forms(t, redactAll, diffbase.Essence{"spec": tc.before})
		for i, form := range stored {
			if c := detect(redactAll, form, diffbase.Essence{"spec": tc.now}); c.Changed == tc.same {
				t.Errorf("%s: %s: form %d: got %v", name, tc.reason, i, c.Diff)
			}
		}
	}
}

func TestLimitIsIncluded(t *testing.T) {
	essence := diffbase.Essence{"spec": "some text"}
	text, err := asciijson.Marshal(essence)
	if err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int]bool{0: false, len(text): false, len(text) - 1: true} {
		r := cause.Redaction{Limit: limit}
		if got, err := r.ExceedsLimit(essence); got != want || err != nil {
			t.Errorf("%d bytes with a limit of %d (0 is none): got %v with error %v", len(text), limit, got, err)
		}
	}
}

// TestBareLeavesTheEssenceAlone shows that Bare copies the essence, which other comparisons share.
func TestBareLeavesTheEssenceAlone(t *testing.T) {
	_, stored := forms(t, redactAll, diffbase.Essence{"spec": object{"a": "x", "b": "y"}})
	old, _ := redactAll.RestoreEssence(body, stored[0], diffbase.Essence{"spec": object{"a": "x", "b": "z"}})
	spec, _ := old["spec"].(object)
	hidden := spec["b"]
	if d := cmp.Diff(diffbase.Essence{"spec": object{"a": "x"}}, cause.WithoutHidden(old)); d != "" || hidden == nil {
		t.Errorf("-want, +got:\n%s", d)
	}
	if spec["b"] != hidden {
		t.Errorf("Bare must not remove the hidden value from its argument: %v", old)
	}
	again, _ := redactAll.RestoreEssence(body, stored[0], old)
	if inner, _ := again["spec"].(object); inner["b"] != hidden || inner["a"] != "x" {
		t.Errorf("a value that is hidden on both sides must be equal: got %v", again)
	}
	_, others := forms(t, redactAll, diffbase.Essence{"spec": object{"a": "x", "b": "other"}})
	different, _ := redactAll.RestoreEssence(body, others[0], old)
	if inner, _ := different["spec"].(object); inner["b"] == hidden || inner["b"] == nil {
		t.Errorf("values that are hidden with different digests must differ: got %v", different)
	}
}
