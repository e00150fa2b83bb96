package kopf_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
)

var errTried = errors.New("tried in vain")

// TestTryPatch shows that the changes of a failed function are neither written nor visible.
func TestTryPatch(t *testing.T) {
	cases := map[string]struct {
		reason    string
		act       func(c *Change) error
		want      map[string]any // the spec as written
		err       string
		wantFinal bool
	}{
		"success": {"a successful function is a patch", func(c *Change) error {
			c.TryPatch(func(w *Widget) error { w.Spec.Owner = "bob"; return nil })
			return wantOwner(c, "bob")
		}, map[string]any{"owner": "bob"}, "", true},
		"failure": {"the changes of a failed function are neither written nor visible", func(c *Change) error {
			c.TryPatch(func(w *Widget) error { w.Spec.Owner, w.Spec.Extra["k"] = "bob", "x"; return errTried })
			if c.Object.Spec.Extra["k"] != "v" {
				return errors.New("the handler sees " + c.Object.Spec.Extra["k"])
			}
			return wantOwner(c, "ann")
		}, map[string]any{"owner": "ann"}, "tried in vain", false},
		"permanent failure": {"a permanent error stays permanent", func(c *Change) error {
			c.TryPatch(func(*Widget) error { return kopf.Permanent(errTried) })
			return nil
		}, map[string]any{"owner": "ann"}, "tried in vain", true},
		"panic": {"a panic fails the handler", func(c *Change) error {
			c.TryPatch(func(w *Widget) error { w.Spec.Owner = "bob"; panic("oops") })
			return wantOwner(c, "ann")
		}, map[string]any{"owner": "ann"}, "panic: oops", false},
		"nil": {"a nil function fails the handler", func(c *Change) error { c.TryPatch(nil); return nil },
			map[string]any{"owner": "ann"}, "nil pointer", false},
		"beside others": {"patches before and after a failed one are written", func(c *Change) error {
			c.Patch(func(w *Widget) { w.Spec.Owner = "bob" })
			c.TryPatch(func(w *Widget) error { w.Spec.Owner = "carl"; return errTried })
			c.Patch(func(w *Widget) { w.Spec.Size = 5 })
			return wantOwner(c, "bob")
		}, map[string]any{"owner": "bob", "size": int64(5)}, "tried in vain", false},
		"on other states": {"a function that fails on the object to be written changes nothing", func(c *Change) error {
			c.Object.Spec.Owner = "mine" // in place, so that the two differ
			c.TryPatch(func(w *Widget) error {
				if w.Spec.Owner != "mine" {
					return errTried
				}
				w.Spec.Owner = "bob"
				return nil
			})
			return wantOwner(c, "mine")
		}, map[string]any{"owner": "ann"}, "tried in vain", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := map[string]any{"owner": "ann", "extra": map[string]any{"k": "v"}}
			tc.want["extra"] = spec["extra"]
			a := call(t, newCreationOperator(func(_ context.Context, c *Change) error { return tc.act(c) }), body(spec),
				nil)
			switch err := a.Outcome.Err; {
			case tc.err == "" && err != nil:
				t.Fatalf("%s: got error %v", tc.reason, err)
			case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err) ||
				!strings.Contains(err.Error(), `patching object ns/w1 by handler "fn"`) ||
				strings.Contains(err.Error(), "the handler sees")):
				t.Errorf("%s: want %q in the error, got: %v", tc.reason, tc.err, err)
			}
			if a.Outcome.Final != tc.wantFinal {
				t.Errorf("%s: got %+v", tc.reason, a.Outcome)
			}
			if d := cmp.Diff(body(tc.want), applyAttempt(t, a, body(spec))); d != "" {
				t.Errorf("%s\nwritten: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

func wantOwner(c *Change, owner string) error {
	if c.Object.Spec.Owner != owner {
		return errors.New("the handler sees " + c.Object.Spec.Owner)
	}
	return nil
}

// TestTryPatchOnAFreshObject shows that a function of TryPatch that fails on a newer object is an error of the write.
func TestTryPatchOnAFreshObject(t *testing.T) {
	a := call(t, newCreationOperator(func(_ context.Context, c *Change) error {
		c.TryPatch(func(w *Widget) error {
			if w.Spec.Owner == "taken" {
				return errTried
			}
			w.Spec.Owner = "bob"
			return nil
		})
		return nil
	}), body(map[string]any{"owner": "ann"}), nil)
	fresh := body(map[string]any{"owner": "taken"})
	patch := patching.Patch{Transforms: patching.ContainPanics(a.UnwrittenTransforms())}
	_, err := patch.ApplyTo(fresh)
	var failed *patching.TransformError
	if !errors.As(err, &failed) || !errors.Is(err, errTried) {
		t.Errorf("the function must fail again after a conflict: got %v", err)
	}
}
