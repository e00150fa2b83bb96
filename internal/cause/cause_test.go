package cause_test

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
)

func TestDetect(t *testing.T) {
	tests := map[string]struct {
		reason string
		given  cause.Observation
		want   cause.Reason
		diffs  int
	}{
		"NullAppears": {
			reason: "a null equals an absent key, so there is no change", want: cause.Noop,
			given: cause.Observation{Old: object{"spec": object{}}, New: object{"spec": object{"a": nil}}},
		},
		"HandledToNothing": {
			reason: "an empty last-handled configuration is not a missing one: the object was handled",
			want:   cause.Update, diffs: 1,
			given: cause.Observation{Old: object{}, New: object{"spec": object{}}},
		},
		"NullDeletion": {
			reason: "an object whose deletion timestamp is null is not being deleted", want: cause.Create, diffs: 1,
			given: cause.Observation{Body: object{"metadata": object{"deletionTimestamp": nil}}, New: object{}},
		},
		"ForeignFinalizers": {
			reason: "finalizers that are not a list do not hold the object", want: cause.Free, diffs: 1,
			given: cause.Observation{
				Body: object{"metadata": object{"deletionTimestamp": "x", "finalizers": "ours"}}, Finalizer: "ours",
				New: object{},
			},
		},
		"GoneWithoutBody": {
			reason: "a deleted object needs no body", want: cause.Gone, given: cause.Observation{Gone: true},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := cause.Detect(tc.given)
			if got.Reason != tc.want || len(got.Diff) != tc.diffs {
				t.Errorf("%s: got %s with %d differences: %v", tc.reason, got.Reason, len(got.Diff), got.Diff)
			}
		})
	}
}

// TestReasonsAgreeWithFacts shows that the reason of a cause agrees with its facts, for all combinations of facts.
func TestReasonsAgreeWithFacts(t *testing.T) {
	for facts := range 1 << 6 {
		is := func(bit int) bool { return facts&(1<<bit) != 0 }
		metadata := object{}
		if is(0) {
			metadata["deletionTimestamp"] = "2020-01-01T00:00:00Z"
		}
		if is(1) {
			metadata["finalizers"] = []any{"theirs", "ours"}
		}
		o := cause.Observation{
			Body: object{"metadata": metadata}, Finalizer: "ours", Gone: is(2), Initial: is(3), New: object{"a": "new"},
		}
		if is(4) {
			o.Old = object{"a": map[bool]any{true: "old", false: "new"}[is(5)]}
		}
		c := cause.Detect(o)
		if c.Deleting != is(0) || c.HasFinalizer != is(1) || c.Gone != is(2) || c.Handled != is(4) ||
			c.Changed != (!is(4) || is(5)) || c.Initial != (is(3) && !c.IsCreated()) {
			t.Errorf("facts %06b: got %+v", facts, c)
		}
		got := []bool{c.IsCreated(), c.IsUpdated(), c.IsDeleted()}
		for i, reason := range []cause.Reason{cause.Create, cause.Update, cause.Delete} {
			if got[i] != (c.Reason == reason) {
				t.Errorf("facts %06b: the reason is %s, but the fact of %s is %v", facts, c.Reason, reason, got[i])
			}
		}
		if c.Reason == cause.Resume && !c.IsResumed(false) || c.IsResumed(false) && !c.IsResumed(true) {
			t.Errorf("facts %06b: reason %s, resumed %v", facts, c.Reason, c.IsResumed(false))
		}
	}
}
