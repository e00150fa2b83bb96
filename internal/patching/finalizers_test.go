package patching_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/patching"
)

// TestGuardFinalizers shows that handlers cannot remove the operator's own finalizer, and that they can change all
// others.
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
			reason: "a handler that removes all finalizers keeps the operator's own",
			before: []any{"other", "own"}, want: []any{"own"},
		},
		"RemovesOther": {
			reason: "a handler may remove the finalizers of others", before: []any{"other", "own"},
			change: []any{"own"}, want: []any{"own"},
		},
		"Empties": {reason: "a handler that empties the list keeps the operator's own",
			before: []any{"own"}, change: []any{}, want: []any{"own"}},
		"NotHeld": {reason: "the operator's own finalizer is not added to other objects",
			before: []any{"other"}, want: nil},
		"Adds": {
			reason: "a handler that adds a finalizer twice adds it once",
			before: []any{"own", "mine"}, change: []any{"own", "mine", "mine"},
			want: []any{"own", "mine"},
		},
		"Repeats": {
			reason: "duplicates from other clients are kept", before: []any{"a", "a", "own"},
			change: []any{"a", "a", "own"}, want: []any{"a", "a", "own"},
		},
		"Fails": {
			reason: "the error of the function is returned", before: []any{"own"}, fails: failed, want: []any{"own"},
		},
		"NoList": {reason: "a finalizers value that is not a list is kept", before: "own", change: "own", want: "own"},
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
