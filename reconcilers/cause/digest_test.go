package cause_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

func digestOf(t *testing.T, essence diffbase.Essence) diffbase.Essence {
	t.Helper()
	digest, err := cause.Digest(essence)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func TestDigestFails(t *testing.T) {
	if got, err := cause.Digest(diffbase.Essence{"spec": math.NaN()}); err == nil {
		t.Errorf("what is no JSON has no digest: got %v", got)
	}
}

func TestRecall(t *testing.T) {
	present := diffbase.Essence{"spec": object{"a": int64(1), "b": "x"}}
	digest := digestOf(t, present)
	tests := map[string]struct {
		reason  string
		stored  diffbase.Essence
		present diffbase.Essence
		want    diffbase.Essence
	}{
		"Never":   {reason: "never handled stays never handled", present: present},
		"Essence": {reason: "what is stored as a whole is recalled as it is", stored: diffbase.Essence{"spec": "y"}, present: present, want: diffbase.Essence{"spec": "y"}},
		"Changed": {
			reason: "that it changed is known, what it was is not", stored: digest, present: diffbase.Essence{"spec": object{"a": int64(2), "b": "x"}},
			want: diffbase.Essence{},
		},
		"Unpresentable": {reason: "what cannot be compared is not taken for the same", stored: digest, present: diffbase.Essence{"spec": math.Inf(1)}, want: diffbase.Essence{}},
		"NoText":        {reason: "a key of the same name with something else is the user's", stored: diffbase.Essence{"$sha256": int64(1)}, present: present, want: diffbase.Essence{"$sha256": int64(1)}},
		"NotAlone": {
			reason: "a stand-in stands alone", stored: diffbase.Essence{"$sha256": digest["$sha256"], "spec": "y"}, present: present,
			want: diffbase.Essence{"$sha256": digest["$sha256"], "spec": "y"},
		},
		"Unchanged": {reason: "the present essence is the remembered one, values and all", stored: digest, present: present, want: present},
		"SameNumber": {
			reason: "a whole float is an integer here, as in all comparisons", stored: digest,
			present: diffbase.Essence{"spec": object{"b": "x", "a": 1.0}}, want: diffbase.Essence{"spec": object{"b": "x", "a": 1.0}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, cause.Recall(tc.stored, tc.present)); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

func TestDigestIsSmall(t *testing.T) {
	list := make([]any, 100_000)
	for i := range list {
		list[i] = int64(i)
	}
	digest := digestOf(t, diffbase.Essence{"spec": list})
	if text, _ := digest["$sha256"].(string); len(digest) != 1 || len(text) != 64 {
		t.Errorf("it must fit where the essence does not: %v", digest)
	}
}

func TestDetect(t *testing.T) {
	tests := map[string]struct {
		reason string
		given  cause.Observation
		want   cause.Reason
		diffs  int
	}{
		"NullAppears": {
			reason: "a null and an absent key are the same to a diff, so nothing happened", want: cause.Noop,
			given: cause.Observation{Old: object{"spec": object{}}, New: object{"spec": object{"a": nil}}},
		},
		"HandledToNothing": {
			reason: "an empty essence is one: the object was handled", want: cause.Update, diffs: 1,
			given: cause.Observation{Old: object{}, New: object{"spec": object{}}},
		},
		"NullDeletion": {
			reason: "a null deletion timestamp is none", want: cause.Create, diffs: 1,
			given: cause.Observation{Body: object{"metadata": object{"deletionTimestamp": nil}}, New: object{}},
		},
		"ForeignFinalizers": {
			reason: "finalizers of others, or what is no list, do not hold it for us", want: cause.Free, diffs: 1,
			given: cause.Observation{Body: object{"metadata": object{"deletionTimestamp": "x", "finalizers": "ours"}}, Finalizer: "ours", New: object{}},
		},
		"GoneWithoutBody": {reason: "nothing need be known of what is no more", want: cause.Gone, given: cause.Observation{Gone: true}},
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

func TestReasonHandled(t *testing.T) {
	handled := map[cause.Reason]bool{cause.Create: true, cause.Update: true, cause.Delete: true, cause.Resume: true,
		cause.Noop: false, cause.Free: false, cause.Gone: false, "": false}
	for reason, want := range handled {
		if got := reason.Handled(); got != want {
			t.Errorf("%q: got %v, want %v", reason, got, want)
		}
	}
}
