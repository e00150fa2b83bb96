package kopf_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
)

// withLogLines returns a context whose logger appends to the lines.
func withLogLines(ctx context.Context, lines *[]string) context.Context {
	return logf.IntoContext(ctx, funcr.New(func(_, args string) { *lines = append(*lines, args) }, funcr.Options{}))
}

// linesWith returns the lines that contain the text.
func linesWith(lines []string, text string) (found []string) {
	for _, line := range lines {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

// TestInPlace shows that changes of handlers to c.Object, which are not written, are reported once.
func TestInPlace(t *testing.T) {
	cases := map[string]struct {
		reason string
		act    func(c *Change) error
		want   string // the fields; empty for no warning
	}{
		"a field": {
			"a changed field is reported",
			func(c *Change) error { c.Object.Status.Host = "h"; return nil },
			`["status.host"]`,
		},
		"an item of a list": {"a changed item of a list is reported as the whole list", func(c *Change) error {
			c.Object.Spec.Parts[0].Count = 7
			return nil
		}, `["spec.parts"]`},
		"a key of a mapping": {"a changed key of a mapping is reported", func(c *Change) error {
			c.Object.Spec.Extra["k"] = "other"
			return nil
		}, `["spec.extra.k"]`},
		"a key that goes": {"a removed key of a mapping is reported", func(c *Change) error {
			delete(c.Object.Spec.Extra, "k")
			return nil
		}, `["spec.extra"]`},
		"a field that is emptied": {"an emptied field is reported", func(c *Change) error {
			c.Object.Spec.Owner = ""
			return nil
		}, `["spec.owner"]`},
		"a label": {"changed metadata is reported", func(c *Change) error {
			c.Object.Labels = map[string]string{"a": "b"}
			return nil
		}, `["metadata.labels"]`},
		"beside a patch": {"a change beside a patch of another field is reported", func(c *Change) error {
			c.Object.Status.Host = "h"
			c.Patch(func(w *Widget) { w.Status.Ready = true })
			return nil
		}, `["status.host"]`},
		"after a patch": {"a change after a patch of the same field is reported", func(c *Change) error {
			c.Patch(func(w *Widget) { w.Status.Host = "h" })
			c.Object.Status.Host = "other"
			return nil
		}, `["status.host"]`},
		"behind the field": {"a change is reported even if c.Object is replaced later", func(c *Change) error {
			c.Object.Status.Host = "h"
			c.Object = c.Latest()
			return nil
		}, `["status.host"]`},

		"nothing": {"a handler without changes is not reported", func(*Change) error { return nil }, ""},
		"a patch": {"a patch is not reported", func(c *Change) error {
			c.Patch(func(w *Widget) { w.Status.Host, w.Spec.Extra["k"] = "h", "v" })
			return nil
		}, ""},
		"a patch with the time": {"a patch with other values in each run is not reported", func(c *Change) error {
			n := 0
			c.Patch(func(w *Widget) { n++; w.Spec.Size = int32(n) })
			return nil
		}, ""},
		"a failed try": {"the changes of a failed TryPatch are not reported", func(c *Change) error {
			c.TryPatch(func(w *Widget) error { w.Status.Host = "h"; return errors.New("no") })
			return nil
		}, ""},
		"drawn up in place": {"a change that is patched from c.Object is not reported", func(c *Change) error {
			c.Object.Status.Host = "h"
			c.Patch(func(w *Widget) { w.Status = c.Object.Status })
			return nil
		}, ""},
		"aliased": {"a change to a mapping that is patched again is not reported", func(c *Change) error {
			extra := map[string]string{"a": "1"}
			c.Patch(func(w *Widget) { w.Spec.Extra = extra })
			extra["a"] = "2"
			c.Patch(func(w *Widget) { w.Spec.Extra = extra })
			return nil
		}, ""},
		"undone": {"an undone change is not reported", func(c *Change) error {
			c.Object.Status.Host = "h"
			c.Object.Status.Host = ""
			return nil
		}, ""},
		"an error": {"a change before an error is not reported: the retry gets a fresh copy", func(c *Change) error {
			c.Object.Status.Host = "h"
			return errors.New("failed")
		}, ""},
		"nil made empty": {"an empty map or slice instead of nil is not reported", func(c *Change) error {
			c.Object.Labels, c.Object.Spec.Tags = map[string]string{}, []string{}
			return nil
		}, ""},
		"written by a client": {"the response to a write, which has a new version, is not reported",
			func(c *Change) error {
				c.Object.Status.Host = "h"
				c.Object.ResourceVersion = "8"
				return nil
			}, ""},
		"identity": {"a change that Patch cannot write is not reported", func(c *Change) error {
			c.Object.TypeMeta.Kind, c.Object.Name = "", "copy"
			return nil
		}, ""},
		"another object": {"a change to a replacement of c.Object is not reported", func(c *Change) error {
			c.Object = c.Latest()
			c.Object.Status.Host = "h"
			return nil
		}, ""},
		"nil in the field": {"nil in c.Object is not reported", func(c *Change) error { c.Object = nil; return nil },
			""},
	}
	spec := map[string]any{
		"parts": []any{map[string]any{"name": "a", "unknown": "x"}}, "extra": map[string]any{"k": "v"},
		"other": "y", "owner": "o",
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for form, given := range map[string][]func(*execution.Attempt){"copied": nil,
				"given as a text": {requestObjectText}} {
				var lines []string
				op := newCreationOperator(func(_ context.Context, c *Change) error { return tc.act(c) })
				for range 2 {
					callIn(withLogLines(t.Context(), &lines), t, op, body(spec), nil, given...)
				}
				said := linesWith(lines, "changed its copy of the object")
				switch {
				case tc.want == "" && len(said) > 0:
					t.Errorf("%s, %s: want no line, got: %v", tc.reason, form, said)
				case tc.want != "" && (len(said) != 1 || !strings.Contains(said[0], `"fields"=`+tc.want)):
					t.Errorf("%s, %s: want one line with %s, got: %v", tc.reason, form, tc.want, said)
				}
			}
		})
	}
}

// requestObjectText gives the object as a text, as the engine does, which copies the object when the handler asks for
// it.
func requestObjectText(a *execution.Attempt) {
	text, err := json.Marshal(a.Call.Object)
	if err != nil {
		panic(err)
	}
	a.Call.EncodedObject, a.Call.Object = jsontext.New(text), nil
}

// TestInPlaceUntyped shows that changes to an unstructured object are reported as well.
func TestInPlaceUntyped(t *testing.T) {
	cases := map[string]struct {
		reason string
		act    func(o *kopf.Unstructured)
		want   int
	}{
		"changed": {"a changed field is reported", func(o *kopf.Unstructured) { _ = kopf.SetField(o, "spec.size", 2) },
			1},
		"retyped": {"another integer type with the same value is not reported",
			func(o *kopf.Unstructured) { _ = kopf.SetField(o, "spec.size", 1) }, 0},
		"no JSON": {
			"an object that cannot be encoded is not compared",
			func(o *kopf.Unstructured) { o.Object["spec"] = make(chan int) }, 0,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var lines []string
			op := kopf.New("test.example.org")
			kopf.ForResource(op, "example.org/v1", "widgets").OnEvent(
				"fn", func(_ context.Context, e *kopf.WatchEvent[*kopf.Unstructured]) error {
					tc.act(e.Object)
					return nil
				},
			)
			callIn(withLogLines(t.Context(), &lines), t, op, body(map[string]any{"size": int64(1)}), nil)
			if said := linesWith(lines, "changed its copy of the object"); len(said) != tc.want {
				t.Errorf("%s: want %d lines, got: %v", tc.reason, tc.want, lines)
			}
		})
	}
}

// TestInPlaceOfManyCalls shows that outside of tests, only the first calls of a handler are checked for changes in
// place.
func TestInPlaceOfManyCalls(t *testing.T) {
	defer kopf.LookAtFirstCallsOnly()()
	var lines []string
	n := 0
	op := newCreationOperator(func(_ context.Context, c *Change) error {
		if n++; n > 3 {
			c.Object.Status.Host = "h"
		}
		return nil
	})
	for range 6 {
		callIn(withLogLines(t.Context(), &lines), t, op, body(nil), nil)
	}
	if said := linesWith(lines, "changed its copy"); len(said) > 0 {
		t.Errorf("outside of tests, only the first calls must be checked: %v", said)
	}
}

// TestShortDelays shows that a delay of less than a millisecond becomes a second and is logged (deviation
// D-short-delay).
func TestShortDelays(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		want   string // the delay of the next attempt
		lines  int
	}{
		"bare number": {"a number without a unit becomes a second", kopf.Temporary(errors.New("x"), 30), "1s", 1},
		"with format": {"the longest delay that is too short becomes a second",
			kopf.Temporary(fmt.Errorf("x"), 999_999), "1s", 1},
		"shortest": {"a delay of a millisecond is kept", kopf.Temporary(nil, time.Millisecond), "1ms", 0},
		"zero":     {"a delay of zero is kept", kopf.Temporary(nil, 0), "0s", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var lines []string
			op := newCreationOperator(func(context.Context, *Change) error { return tc.err })
			for range 2 {
				a := callIn(withLogLines(t.Context(), &lines), t, op, body(nil), nil)
				if a.Outcome.Delay == nil || a.Outcome.Delay.String() != tc.want {
					t.Errorf("%s: want a delay of %s, got %+v", tc.reason, tc.want, a.Outcome)
				}
			}
			if said := linesWith(lines, "too short to be meant"); len(said) != tc.lines {
				t.Errorf("%s: want %d lines, got: %v", tc.reason, tc.lines, said)
			}
		})
	}
}

// TestShortDelaysOfIndexFunctions shows that index functions have the same limit for short delays as handlers.
func TestShortDelaysOfIndexFunctions(t *testing.T) {
	op := kopf.New("test.example.org")
	kopf.NewIndex(kopf.For(op, &Widget{}), "fn", func(context.Context, *Widget) (map[string]int, error) {
		return nil, kopf.Temporary(nil, 5)
	})
	plan := planOf(t, op)
	var (
		lines []string
		err   error
	)
	h := plan[0].Handler
	for range 2 {
		_, _, err = h.Index.Call(withLogLines(t.Context(), &lines), &handlers.Invocation{Handler: h, Object: body(nil)})
	}
	if delay, _ := execution.RetryAfter(err); delay != time.Second ||
		len(linesWith(lines, "too short to be meant")) != 1 {
		t.Errorf("want one line and a second, got %s and %v", delay, lines)
	}
}

// TestMistakesInTheBackground shows that a daemon's short delay is reported, and changes to its own copies are not.
func TestMistakesInTheBackground(t *testing.T) {
	op := kopf.New("test.example.org")
	kopf.For(op, &Widget{}).Daemon("fn", func(_ context.Context, r *Run) error {
		object := r.Latest()
		object.Status.Host = "h" // each call has its own copy, so this is not a mistake
		if r.Retry > 0 {
			return kopf.Temporary(nil, 60)
		}
		return nil
	})
	var lines []string
	for retry := range 3 {
		callIn(withLogLines(t.Context(), &lines), t, op, body(nil), nil, func(a *execution.Attempt) {
			a.Call.LiveObject, a.Call.Object, a.Account.Retries = &fakeLive{object: body(nil)}, nil, retry
		})
	}
	if len(linesWith(lines, "changed its copy")) != 0 ||
		len(linesWith(lines, "60ns: did you mean 60*time.Second?")) != 1 {
		t.Errorf("want one line about the delay, got: %v", lines)
	}
}

// TestMistakesOfSubHandlers shows that a mistake of sub-handlers is reported once for each function.
func TestMistakesOfSubHandlers(t *testing.T) {
	var lines []string
	op := newCreationOperator(func(_ context.Context, c *Change) error {
		for _, id := range []string{"a", "b"} { // of one function
			c.Sub(id, func(_ context.Context, c *Change) error { c.Object.Status.Host = id; return nil })
		}
		c.Sub("c", func(_ context.Context, c *Change) error { c.Object.Status.Ready = true; return nil })
		c.Sub("d", func(context.Context, *Change) error { return kopf.Temporary(nil, 5) })
		return nil
	})
	for range 2 {
		held := &subs{}
		ctx := withLogLines(t.Context(), &lines)
		call(t, op, body(nil), nil, func(a *execution.Attempt) { a.Call.Subs = held })
		for _, sub := range held.declared {
			a := execution.NewAttempt(sub, &cause.Cause{Object: jsontext.NewFromValue(body(nil))}, body(nil))
			if _, err := adapters.New(sub, nil).Reconcile(ctx, a); err != nil {
				t.Fatal(err)
			}
		}
	}
	said := strings.Join(append(linesWith(lines, "changed its copy"), linesWith(lines, "too short to be meant")...),
		"\n")
	for id, want := range map[string]int{"a": 1, "b": 0, "c": 1, "d": 1} {
		text := fmt.Sprintf(`"handler"=%q`, id)
		if got := strings.Count(said, text); got != want {
			t.Errorf("want %d lines of %s, got %d: %s", want, text, got, said)
		}
	}
}
