package patching_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

func TestGuardFinalizers(t *testing.T) {
	failed := errors.New("failed")
	for name, tc := range map[string]struct {
		reason string
		before any
		change any // nil removes the list
		fails  error
		want   any
	}{
		"RemovesAll": {
			reason: "other handlers may need the operator's own", before: []any{"other", "own"}, want: []any{"own"},
		},
		"RemovesOther": {
			reason: "the finalizers of others are the handler's to remove", before: []any{"other", "own"},
			change: []any{"own"}, want: []any{"own"},
		},
		"Empties": {reason: "an empty list is none", before: []any{"own"}, change: []any{}, want: []any{"own"}},
		"NotHeld": {reason: "the object was not held", before: []any{"other"}, want: nil},
		"Adds": {
			reason: "a finalizer is there once", before: []any{"own", "mine"}, change: []any{"own", "mine", "mine"},
			want: []any{"own", "mine"},
		},
		"Repeats": {
			reason: "what others have written stays as it is", before: []any{"a", "a", "own"},
			change: []any{"a", "a", "own"}, want: []any{"a", "a", "own"},
		},
		"Fails": {
			reason: "the error is for the handler", before: []any{"own"}, fails: failed, want: []any{"own"},
		},
		"NoList": {reason: "odd values are not touched", before: "own", change: "own", want: "own"},
	} {
		t.Run(name, func(t *testing.T) {
			body := map[string]any{"metadata": map[string]any{"finalizers": tc.before}}
			err := patching.GuardFinalizers("own", func(body map[string]any) error {
				switch {
				case tc.fails != nil:
					return tc.fails
				case tc.change == nil:
					delete(body, "metadata")
				default:
					body["metadata"] = map[string]any{"finalizers": tc.change}
				}
				return nil
			})(body)
			metadata, _ := body["metadata"].(map[string]any)
			if d := cmp.Diff(tc.want, metadata["finalizers"]); d != "" || !errors.Is(err, tc.fails) {
				t.Errorf("%s: error %v; -want, +got:\n%s", tc.reason, err, d)
			}
		})
	}
}
