package cause_test

import (
	"math"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// TestHash shows that essences without a difference have the same hash, that others have different ones, and that the
// hash does not allocate memory.
func TestHash(t *testing.T) {
	base := func() map[string]any {
		return map[string]any{"spec": map[string]any{
			"a": int64(1), "b": []any{"x", true}, "c": 1.5, "d": map[string]any{},
		}}
	}
	edited := func(value any, key string) map[string]any {
		e := base()
		e["spec"].(map[string]any)[key] = value
		return e
	}
	for reason, same := range map[string]map[string]any{
		"equal essences": base(), "a whole float instead of the integer": edited(float64(1), "a"),
		"an additional null": edited(nil, "z"),
	} {
		if cause.HashEssence(same) != cause.HashEssence(base()) {
			t.Errorf("%s: the hash differs", reason)
		}
	}
	for reason, other := range map[string]map[string]any{
		"another number": edited(int64(2), "a"), "a text": edited("1", "a"),
		"another order": edited([]any{true, "x"}, "b"),
		"another key":   edited(int64(1), "z"), "an absent mapping": edited(nil, "d"), "a boolean": edited(true, "a"),
		"a fraction": edited(1.25, "c"), "nothing": {},
	} {
		if cause.HashEssence(other) == cause.HashEssence(base()) {
			t.Errorf("%s: the hash is the same", reason)
		}
	}
	essence := base()
	if n := testing.AllocsPerRun(100, func() { cause.HashEssence(essence) }); n > 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func TestFingerprint(t *testing.T) {
	base := diffbase.Essence{"spec": map[string]any{"a": int64(1), "list": []any{nil, map[string]any{"x": nil}}}}
	cases := map[string]struct {
		reason string
		other  diffbase.Essence
	}{
		"Same": {
			"equal essences have the same fingerprint",
			diffbase.Essence{"spec": map[string]any{"a": int64(1), "list": []any{nil, map[string]any{"x": nil}}}},
		},
		"Float": {
			"a whole float equals the integer",
			diffbase.Essence{"spec": map[string]any{"a": 1.0, "list": []any{nil, map[string]any{"x": nil}}}},
		},
		"Null": {
			"a null equals an absent key",
			diffbase.Essence{
				"data": nil,
				"spec": map[string]any{"a": int64(1), "b": nil, "list": []any{nil, map[string]any{"x": nil}}},
			},
		},
		"NullInList": {
			"a null in a mapping within a list differs from an absent key",
			diffbase.Essence{"spec": map[string]any{"a": int64(1), "list": []any{nil, map[string]any{}}}},
		},
		"Value": {
			"another value has another fingerprint",
			diffbase.Essence{"spec": map[string]any{"a": int64(2), "list": []any{nil, map[string]any{"x": nil}}}},
		},
		"Boolean": {
			"a boolean differs from a number",
			diffbase.Essence{"spec": map[string]any{"a": true, "list": []any{nil, map[string]any{"x": nil}}}},
		},
		"Empty":   {"an empty essence has another fingerprint", diffbase.Essence{}},
		"Nothing": {"a missing essence has another fingerprint", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mine, err := cause.EssenceFingerprint(base)
			if err != nil {
				t.Fatal(err)
			}
			theirs, err := cause.EssenceFingerprint(tc.other)
			if err != nil {
				t.Fatal(err)
			}
			same := tc.other != nil && len(diff.Compute(base, tc.other)) == 0
			if (mine == theirs) != same {
				t.Errorf(
					"%s: the fingerprints are %q and %q, but whether the essences are equal is %v", tc.reason, mine,
					theirs, same,
				)
			}
		})
	}
}

// TestFingerprintOfCauses shows that causes have different fingerprints if their reasons or the essences of the object
// differ.
func TestFingerprintOfCauses(t *testing.T) {
	essence := func(value any) map[string]any { return map[string]any{"spec": map[string]any{"a": value}} }
	one := &cause.Cause{Reason: cause.Update, New: essence(int64(1))}
	for name, tc := range map[string]struct {
		reason string
		other  *cause.Cause
		same   bool
	}{
		"Same": {"equal causes have the same fingerprint", &cause.Cause{Reason: cause.Update, New: essence(int64(1))},
			true},
		"Status": {
			"the object outside of the essence does not count",
			&cause.Cause{Reason: cause.Update, New: one.New, Object: jsontext.NewFromValue(one.New)}, true,
		},
		"Reason": {"another reason is another cause", &cause.Cause{Reason: cause.Delete, New: one.New}, false},
		"Essence": {"another essence is another cause", &cause.Cause{Reason: cause.Update, New: essence(int64(2))},
			false},
		"NoJSON": {"an essence that is not JSON is another cause",
			&cause.Cause{Reason: cause.Update, New: essence(math.NaN())}, false},
	} {
		if same := one.ChangeFingerprint() == tc.other.ChangeFingerprint(); same != tc.same {
			t.Errorf("%s: %s: the same: %v", name, tc.reason, same)
		}
	}
}
