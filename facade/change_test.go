package kopf_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// TestObjectsThatDoNotFit shows that an object that does not fit the Go type does not call the handler, with an
// error that names the field.
func TestObjectsThatDoNotFit(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   map[string]any
		want   string
	}{
		"wrong type": {"a string in an integer field is an error",
			map[string]any{"size": "three"}, "field spec.size: string cannot be decoded into a Go int32"},
		"overflow": {"a number that overflows its field is an error",
			map[string]any{"size": int64(3000000000)},
			"field spec.size: number 3000000000 cannot be decoded into a Go int32"},
		"custom decoder": {"an error of a custom decoder names the field",
			map[string]any{"weight": "heavy"}, "field spec.weight: quantities must match the regular expression"},
		"deep in a list": {"an error in a list names the index of the item",
			map[string]any{"parts": []any{map[string]any{"name": "a"}, map[string]any{"name": "b", "count": true}}},
			"field spec.parts.1.count: bool cannot be decoded into a Go int"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			called := false
			op := newCreationOperator(func(context.Context, *Change) error { called = true; return nil })
			a := call(t, op, body(c.spec), nil)
			if called {
				t.Error("an object that does not decode does not call the handler")
			}
			if !a.Outcome.Blocked || a.Outcome.Err == nil {
				t.Fatalf("%s: the handler waits for a change of the object: got %+v", c.reason, a.Outcome)
			}
			for _, want := range []string{"object ns/w1", "*kopf_test.Widget", c.want} {
				if !strings.Contains(a.Outcome.Err.Error(), want) {
					t.Errorf("%s\nwant %q in the error, got: %v", c.reason, want, a.Outcome.Err)
				}
			}
		})
	}
}

// TestObjectsThatDoNotFitCanBeDeleted shows that the retries of a delete handler also apply to an object that does
// not fit the Go type.
func TestObjectsThatDoNotFitCanBeDeleted(t *testing.T) {
	op := newCreationOperator(succeed, kopf.Retries(1))
	a := call(
		t, op, body(map[string]any{"size": "three"}), nil, func(a *execution.Attempt) { a.Call.Cause.Deleting = true },
	)
	if a.Outcome.Blocked || !a.Outcome.Final {
		t.Errorf("the retries of the handler end the deletion of an object that does not decode: got %+v", a.Outcome)
	}
}

// TestChange shows the fields of a change.
func TestChange(t *testing.T) {
	var got *Change
	op := newCreationOperator(func(_ context.Context, c *Change) error { got = c; return nil })
	c, err := memapi.NewClient(memapi.New())
	if err != nil {
		t.Fatal(err)
	}
	kopf.Connect(op, c)
	spec := map[string]any{
		"owner": "ann", "size": int64(3), "big": int64(9007199254740993), "unknown": "field", "weight": "1000m",
		"parts": []any{map[string]any{"name": "a", "count": int64(1)}},
	}
	old := map[string]any{"spec": map[string]any{"owner": "bob", "size": int64(2)}}
	call(t, op, body(spec), old, func(a *execution.Attempt) { a.Account.Retries = 2 })

	want := &Widget{
		TypeMeta:   metav1.TypeMeta{APIVersion: "example.org/v1", Kind: "Widget"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "w1", UID: "uid-1", ResourceVersion: "7", Generation: 3},
		Spec: WidgetSpec{Owner: "ann", Size: 3, Big: 9007199254740993, Weight: ptr.To(resource.MustParse("1")),
			Parts: []Part{{Name: "a", Count: 1}}},
	}
	if d := cmp.Diff(want, got.Object); d != "" {
		t.Errorf("the object is decoded\n-want, +got:\n%s", d)
	}
	if d := cmp.Diff(&Widget{Spec: WidgetSpec{Owner: "bob", Size: 2}}, got.Old); d != "" {
		t.Errorf("the old object is decoded\n-want, +got:\n%s", d)
	}
	if got.Reason != kopf.ReasonCreate || got.ID != "fn" || got.Retry != 2 || !got.Started.Equal(time.Unix(1000, 0)) {
		t.Errorf("the change has its reason, id, retry and start: got %v %q %d %v",
			got.Reason, got.ID, got.Retry, got.Started)
	}
	if len(got.Diff) == 0 || got.Client == nil {
		t.Errorf("the change has a diff and a client: got %v, %v", got.Diff, got.Client)
	}
}

// TestOldIsNeverNil shows that c.Old is an empty object or has the fields that decode.
func TestOldIsNeverNil(t *testing.T) {
	cases := map[string]struct {
		reason string
		old    map[string]any
		want   *Widget
	}{
		"creation":  {"Old of a creation is empty", nil, &Widget{}},
		"too large": {"Old is empty if the last-handled configuration was not stored", map[string]any{}, &Widget{}},
		"another schema": {"an old object that does not decode keeps the other fields and does not block",
			map[string]any{"spec": map[string]any{"size": "three", "owner": "ann"}},
			&Widget{Spec: WidgetSpec{Owner: "ann"}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got *Widget
			a := call(t, newCreationOperator(func(_ context.Context, c *Change) error { got = c.Old; return nil }),
				body(nil), c.old)
			if a.Outcome.Err != nil {
				t.Fatal(a.Outcome.Err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s\n-want, +got:\n%s", c.reason, d)
			}
		})
	}
	t.Run("unstructured", func(t *testing.T) {
		op := kopf.New("test.example.org")
		kopf.ForResource(op, "example.org/v1", "widgets").OnCreate("fn", func(_ context.Context, c *Raw) error {
			c.Old.SetLabels(map[string]string{"no": "panic"})
			return nil
		})
		if a := call(t, op, body(nil), nil); a.Outcome.Err != nil {
			t.Error(a.Outcome.Err)
		}
	})
}

// TestFlush shows that an error of Flush names the object and the handler.
func TestFlush(t *testing.T) {
	broken := errors.New("the API server is away")
	op := newCreationOperator(func(ctx context.Context, c *Change) error { return c.Flush(ctx) })
	a := call(
		t, op, body(nil), nil,
		func(a *execution.Attempt) { a.FlushNow = func(context.Context) error { return broken } },
	)
	if !errors.Is(a.Outcome.Err, broken) || !strings.Contains(a.Outcome.Err.Error(), `object ns/w1 by handler "fn"`) {
		t.Errorf("the error of Flush names the object and the handler: got %v", a.Outcome.Err)
	}
}

// TestDiffIsRaw shows that the diff of a change includes fields that the Go type does not have.
func TestDiffIsRaw(t *testing.T) {
	var got kopf.Diff
	op := newCreationOperator(func(_ context.Context, c *Change) error { got = c.Diff; return nil })
	want := kopf.Diff{{Op: diff.Change, Path: diff.Path{"spec", "unknown"}, Old: int64(1), New: "x"}}
	call(t, op, body(nil), nil, func(a *execution.Attempt) { a.Call.Cause.Diff = diff.Diff(want) })
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the diff includes fields that the Go type does not have\n-want, +got:\n%s", d)
	}
}
