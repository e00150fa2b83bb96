package kopf_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
)

// applyAttempt returns an object after the patches of an attempt.
func applyAttempt(t *testing.T, a *execution.Attempt, to map[string]any) map[string]any {
	t.Helper()
	patch := patching.Patch{Transforms: a.UnwrittenTransforms()}
	result, err := patch.ApplyTo(to)
	if err != nil {
		t.Fatalf("applying the patch: %v", err)
	}
	return result
}

// TestPatch shows that a patch writes only the changed fields, and keeps those that the Go type lacks.
func TestPatch(t *testing.T) {
	type specs = map[string]any
	cases := map[string]struct {
		reason string
		before specs
		change func(w *Widget)
		want   specs
		status any
	}{
		"nothing": {"a function that changes nothing writes nothing, not even additions of the type",
			specs{"size": int64(1), "weight": "1000m"}, func(*Widget) {},
			specs{"size": int64(1), "weight": "1000m"}, nil},
		"a status": {"only the changed field is written, without the empty fields of the type",
			specs{}, func(w *Widget) { w.Status.Host = "h" }, specs{}, map[string]any{"host": "h"}},
		"unknown fields": {"fields that the type lacks are kept",
			specs{
				"size": int64(1), "unknown": specs{"a": int64(1)}, "owner": "ann",
			}, func(w *Widget) { w.Spec.Owner = "bob" },
			specs{"size": int64(1), "unknown": specs{"a": int64(1)}, "owner": "bob"}, nil},
		"other forms of a value": {"a quantity keeps the form in which it was written",
			specs{"weight": "1000m", "owner": "ann"}, func(w *Widget) { w.Spec.Owner = "bob" },
			specs{"weight": "1000m", "owner": "bob"}, nil},
		"large integers": {"large integers are not rounded",
			specs{"big": int64(9007199254740993), "other": int64(9007199254740995)}, func(w *Widget) { w.Spec.Big++ },
			specs{"big": int64(9007199254740994), "other": int64(9007199254740995)}, nil},
		"removal": {"an omitted field is removed, and null is not written",
			specs{"size": int64(1), "tags": []any{"a"}}, func(w *Widget) { w.Spec.Size, w.Spec.Tags = 0, nil },
			specs{}, nil},
		"key of a mapping": {"the other keys of a mapping are kept",
			specs{
				"extra": specs{"a": "1", "b": "2"},
			}, func(w *Widget) { delete(w.Spec.Extra, "a"); w.Spec.Extra["c"] = "3" },
			specs{"extra": specs{"b": "2", "c": "3"}}, nil},
		"item added": {"an added item leaves the other items unchanged",
			specs{"parts": []any{specs{"name": "a", "count": int64(1), "unknown": true}}},
			func(w *Widget) { w.Spec.Parts = append(w.Spec.Parts, Part{Name: "b"}) },
			specs{"parts": []any{specs{"name": "a", "count": int64(1), "unknown": true},
				specs{"name": "b", "count": int64(0)}}}, nil},
		"item changed": {"a changed item keeps the fields that the type lacks",
			specs{"parts": []any{specs{"name": "a", "unknown": true}, specs{"name": "b", "unknown": false}}},
			func(w *Widget) { w.Spec.Parts[1].Count = 5 },
			specs{"parts": []any{specs{"name": "a", "unknown": true},
				specs{"name": "b", "unknown": false, "count": int64(5)}}}, nil},
		"item removed": {"items behind a removed one keep the fields that the type lacks",
			specs{"parts": []any{specs{"name": "a", "unknown": int64(1)}, specs{"name": "b", "unknown": int64(2)}}},
			func(w *Widget) { w.Spec.Parts = w.Spec.Parts[1:] },
			specs{"parts": []any{specs{"name": "b", "unknown": int64(2)}}}, nil},
		"items swapped": {"swapped items keep the fields that the type lacks",
			specs{"parts": []any{specs{"name": "a", "unknown": int64(1)}, specs{"name": "b", "unknown": int64(2)}}},
			func(w *Widget) { w.Spec.Parts[0], w.Spec.Parts[1] = w.Spec.Parts[1], w.Spec.Parts[0] },
			specs{"parts": []any{specs{"name": "b", "unknown": int64(2)}, specs{"name": "a", "unknown": int64(1)}}},
			nil},
		"identity": {"the identity of the object cannot be changed",
			specs{}, func(w *Widget) { *w = Widget{Spec: WidgetSpec{Owner: "bob"}} }, specs{"owner": "bob"}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var seen *Widget
			op := newCreationOperator(func(_ context.Context,
				ch *Change) error {
				ch.Patch(c.change)
				seen = ch.Object
				return nil
			})
			original := body(c.before)
			pristine := runtime.DeepCopyJSON(original)
			want := body(c.want)
			if c.status != nil {
				want["status"] = c.status
			}
			a := call(t, op, original, nil)
			if a.Outcome.Err != nil {
				t.Fatal(a.Outcome.Err)
			}
			if d := cmp.Diff(want, a.Call.Object); d != "" {
				t.Errorf("%s\nworking copy: -want, +got:\n%s", c.reason, d)
			}
			once := applyAttempt(t, a, original)
			if d := cmp.Diff(want, once); d != "" {
				t.Errorf("%s\nwritten: -want, +got:\n%s", c.reason, d)
			}
			if d := cmp.Diff(pristine, original); d != "" {
				t.Errorf("the cached object was changed\n-want, +got:\n%s", d)
			}
			var shown Widget
			call(t, newCreationOperator(func(_ context.Context, ch *Change) error { shown = *ch.Object; return nil }),
				once, nil)
			if d := cmp.Diff(shown.Spec, seen.Spec) + cmp.Diff(shown.Status, seen.Status); d != "" {
				t.Errorf("%s\nthe handler does not see its own change: -want, +got:\n%s", c.reason, d)
			}
		})
	}
}

// TestPatchAfterConflict shows that a patch can be applied to a newer object, and a second time.
func TestPatchAfterConflict(t *testing.T) {
	op := newCreationOperator(func(_ context.Context, c *Change) error {
		c.Patch(func(w *Widget) {
			for _, p := range w.Spec.Parts {
				if p.Name == "mine" {
					return
				}
			}
			w.Spec.Parts = append(w.Spec.Parts, Part{Name: "mine"})
		})
		return nil
	})
	a := call(t, op, body(map[string]any{}), nil)
	fresh := body(map[string]any{"parts": []any{map[string]any{"name": "theirs", "unknown": "kept"}}, "owner": "them"})
	want := body(map[string]any{"owner": "them", "parts": []any{
		map[string]any{"name": "theirs", "unknown": "kept"}, map[string]any{"name": "mine", "count": int64(0)},
	}})
	once := applyAttempt(t, a, fresh)
	if d := cmp.Diff(want, once); d != "" {
		t.Errorf("on the fresh object: -want, +got:\n%s", d)
	}
	if d := cmp.Diff(want, applyAttempt(t, a, once)); d != "" {
		t.Errorf("a second time, as after a lost answer: -want, +got:\n%s", d)
	}
}

// TestPatchUnstructured shows that a patch of an unstructured object cannot change the identity of the object.
func TestPatchUnstructured(t *testing.T) {
	op := kopf.New("test.example.org")
	kopf.ForResource(op, "example.org/v1", "widgets").OnCreate("fn", func(_ context.Context, c *Raw) error {
		c.Patch(func(o *unstructured.Unstructured) {
			o.Object["spec"].(map[string]any)["size"] = 5 // a Go int, as literals are
			o.SetUID("another")
			o.SetResourceVersion("1")
			o.SetName("another")
			o.SetLabels(map[string]string{"a": "b"})
		})
		if size, _, err := unstructured.NestedFieldNoCopy(c.Object.Object, "spec", "size"); err != nil || size != 5 {
			return errors.New("the handler does not see its own change")
		}
		return nil
	})
	original := body(map[string]any{"big": int64(9007199254740993)})
	a := call(t, op, original, nil)
	if a.Outcome.Err != nil {
		t.Fatal(a.Outcome.Err)
	}
	want := body(map[string]any{"big": int64(9007199254740993), "size": int64(5)})
	want["metadata"].(map[string]any)["labels"] = map[string]any{"a": "b"}
	if d := cmp.Diff(want, a.Call.Object); d != "" {
		t.Errorf("working copy: -want, +got:\n%s", d)
	}
	if d := cmp.Diff(want, applyAttempt(t, a, original)); d != "" {
		t.Errorf("written: -want, +got:\n%s", d)
	}
}

// TestPatchesThatFail shows that a failed patch is an ordinary error of the handler, and is not written.
func TestPatchesThatFail(t *testing.T) {
	cases := map[string]struct {
		reason string
		act    func(c *Raw)
		want   string
	}{
		"panic": {"a panic fails the handler",
			func(c *Raw) { c.Patch(func(*unstructured.Unstructured) { panic("oops") }) }, "panic: oops"},
		"nil function": {"a nil function fails the handler", func(c *Raw) { c.Patch(nil) }, "nil pointer"},
		"no JSON": {"an object that is not JSON fails the handler",
			func(c *Raw) { c.Patch(func(o *unstructured.Unstructured) { o.Object["spec"] = make(chan int) }) },
			"unsupported type: chan int"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org")
			kopf.ForResource(
				op, "example.org/v1", "widgets",
			).OnCreate("fn", func(_ context.Context, ch *Raw) error { c.act(ch); return nil })
			a := call(t, op, body(map[string]any{"size": int64(1)}), nil)
			if a.Outcome.Err == nil || a.Outcome.Final {
				t.Fatalf("%s: want an ordinary error, got %+v", c.reason, a.Outcome)
			}
			for _, want := range []string{`patching object ns/w1 by handler "fn"`, c.want} {
				if !strings.Contains(a.Outcome.Err.Error(), want) {
					t.Errorf("%s\nwant %q in the error, got: %v", c.reason, want, a.Outcome.Err)
				}
			}
			if d := cmp.Diff(body(map[string]any{"size": int64(1)}), a.Call.Object); d != "" {
				t.Errorf("the working copy must not be changed\n-want, +got:\n%s", d)
			}
			if len(a.UnwrittenTransforms()) > 0 {
				t.Error("a failed patch must not be written")
			}
		})
	}
}

// TestOwnErrorAndFailedPatch shows that a handler's own error and that of its patch are both reported.
func TestOwnErrorAndFailedPatch(t *testing.T) {
	own := errors.New("own")
	a := call(t, newCreationOperator(func(_ context.Context, c *Change) error { c.Patch(nil); return own }), body(nil),
		nil)
	if !errors.Is(a.Outcome.Err, own) || !strings.Contains(a.Outcome.Err.Error(), "nil pointer") {
		t.Errorf("both errors must be reported, got: %v", a.Outcome.Err)
	}
}

// TestPatchOfFailedAttempt shows that the patches of a failed attempt are written.
func TestPatchOfFailedAttempt(t *testing.T) {
	op := newCreationOperator(func(_ context.Context, c *Change) error {
		c.Patch(func(w *Widget) { w.Status.Host = "h" })
		return errors.New("failed afterwards")
	})
	if a := call(t, op, body(nil), nil); len(a.UnwrittenTransforms()) != 1 {
		t.Error("the patches of a failed attempt must be written, too")
	}
}

// TestGoroutinesLeftBehind shows that a goroutine cannot change or read anything after its handler has returned.
func TestGoroutinesLeftBehind(t *testing.T) {
	left := make(chan *Change, 1)
	a := call(t, newCreationOperator(func(_ context.Context, c *Change) error { left <- c; return nil }), body(nil),
		nil)
	c := <-left
	c.Patch(func(w *Widget) { w.Status.Host = "late" })
	c.SetResult("late")
	if _, err := kopf.Result[string](c, "fn"); err == nil {
		t.Error("a handler that has returned must not read results")
	}
	if len(a.UnwrittenTransforms()) > 0 || a.ResultToWrite() != nil || c.Object.Status.Host != "" {
		t.Error("a handler that has returned must not change its object")
	}
}

// TestConcurrentPatches shows that patches of concurrent goroutines are all applied.
func TestConcurrentPatches(t *testing.T) {
	op := newCreationOperator(func(_ context.Context, c *Change) error {
		done := make(chan struct{})
		for range 4 {
			go func() {
				c.Patch(func(w *Widget) { w.Spec.Size++ })
				_, _ = kopf.Result[string](c, "fn")
				c.SetResult(1)
				done <- struct{}{}
			}()
		}
		for range 4 {
			<-done
		}
		if c.Object.Spec.Size != 4 {
			return errors.New("patches were lost")
		}
		return nil
	})
	if a := call(t, op, body(nil), nil); a.Outcome.Err != nil {
		t.Error(a.Outcome.Err)
	}
}
