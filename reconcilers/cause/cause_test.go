package cause_test

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
)

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
			given: cause.Observation{
				Body: object{"metadata": object{"deletionTimestamp": "x", "finalizers": "ours"}}, Finalizer: "ours",
				New: object{},
			},
		},
		"GoneWithoutBody": {
			reason: "nothing need be known of what is no more", want: cause.Gone, given: cause.Observation{Gone: true},
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

func TestReasonHandled(t *testing.T) {
	handled := map[cause.Reason]bool{cause.Create: true, cause.Update: true, cause.Delete: true, cause.Resume: true,
		cause.Noop: false, cause.Free: false, cause.Gone: false, "": false}
	for reason, want := range handled {
		if got := reason.Handled(); got != want {
			t.Errorf("%q: got %v, want %v", reason, got, want)
		}
	}
}
