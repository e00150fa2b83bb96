package kopf_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
)

type (
	Admission    = kopf.Admission[*Widget]
	RawAdmission = kopf.Admission[*kopf.Unstructured]
)

// request is one to create a widget; the edits make it another one.
func request(edits map[string]any) map[string]any {
	asked := map[string]any{
		"uid": "request-1", "operation": "CREATE", "name": "w1", "namespace": "ns",
		"resource": map[string]any{"group": "example.org", "version": "v1", "resource": "widgets"},
		"userInfo": map[string]any{"username": "ann", "groups": []any{"staff"}},
		"object": body(map[string]any{
			"owner": "ann", "tags": []any{"b", "a"}, "parts": []any{map[string]any{"name": "p", "color": "red"}},
			"unknown": map[string]any{"list": []any{"x"}}, "big": int64(1) << 60,
		}),
	}
	for key, value := range edits {
		asked[key] = value
	}
	return asked
}

// deletion is a request to delete it.
func deletion() map[string]any {
	asked := request(nil)
	asked["operation"], asked["object"], asked["oldObject"] = "DELETE", nil, asked["object"]
	return asked
}

// verdictOf has the operator's handlers review a request.
func verdictOf(ctx context.Context, t *testing.T, op *kopf.Operator, asked map[string]any) review.Verdict {
	t.Helper()
	return reviewerOf(t, op).ask(ctx, t, asked)
}

type reviewer struct{ review.Reviewer }

// reviewerOf has the operator's handlers, as if all of them were for widgets.
func reviewerOf(t *testing.T, op *kopf.Operator) *reviewer {
	t.Helper()
	plan, err := kopf.Plan(op, newScheme(t))
	if err != nil {
		t.Fatalf("setting up: %v", err)
	}
	served := review.Served{Resource: discovery.Resource{
		GroupVersionKind: schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"},
		Plural:           "widgets", Namespaced: true, Verbs: []string{"list"},
	}}
	for _, one := range plan {
		served.Handlers = append(served.Handlers, adapters.New(one.Handler, nil))
	}
	served.Handlers = adapters.ByFamily(served.Handlers).Admitting
	return &reviewer{review.Reviewer{Served: func() []review.Served { return []review.Served{served} }}}
}

func (r *reviewer) ask(ctx context.Context, t *testing.T, asked map[string]any) review.Verdict {
	t.Helper()
	text, err := json.Marshal(map[string]any{"request": asked})
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.Review(ctx, review.Request{Body: text, Headers: http.Header{"A": {"b"}}})
	if err != nil {
		t.Fatalf("reviewing: %v", err)
	}
	return out.Response
}

// mutated is what the API server makes of an object.
func mutated(t *testing.T, object any, operations []byte) map[string]any {
	t.Helper()
	before, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if operations != nil {
		patch, err := jsonpatch.DecodePatch(operations)
		if err != nil {
			t.Fatal(err)
		}
		if before, err = patch.Apply(before); err != nil {
			t.Fatalf("applying %s: %v", operations, err)
		}
	}
	var after map[string]any
	decoder := json.NewDecoder(strings.NewReader(string(before)))
	decoder.UseNumber()
	if err := decoder.Decode(&after); err != nil {
		t.Fatal(err)
	}
	return after
}

func TestMutate(t *testing.T) {
	tests := map[string]struct {
		reason string
		act    func(a *Admission) error
		want   string // the operations
	}{
		"nothing": {"a handler may have nothing to change", func(*Admission) error { return nil }, "null"},
		"in place": {"a field that T knows, and no other", func(a *Admission) error {
			a.Object.Spec.Size = 3
			return nil
		}, `[{"op":"add","path":"/spec/size","value":3}]`},
		"by patch": {"that is how handlers of changes do it", func(a *Admission) error {
			a.Patch(func(w *Widget) { w.Spec.Size = 3 })
			return nil
		}, `[{"op":"add","path":"/spec/size","value":3}]`},
		"both": {"a patch sees what was changed in place, and the other way round", func(a *Admission) error {
			a.Object.Spec.Size = 3
			a.Patch(func(w *Widget) { w.Spec.Size++ })
			a.Object.Spec.Size *= 2
			return nil
		}, `[{"op":"add","path":"/spec/size","value":8}]`},
		"an item of a list": {"what the item has beside what T knows stays", func(a *Admission) error {
			a.Object.Spec.Parts[0].Count = 2
			return nil
		}, `[{"op":"replace","path":"/spec/parts","value":[{"color":"red","count":2,"name":"p"}]}]`},
		"removed": {"a field may go", func(a *Admission) error {
			a.Object.Spec.Parts = nil
			return nil
		}, `[{"op":"remove","path":"/spec/parts"}]`},
		"a label": {"metadata is a part of the object", func(a *Admission) error {
			a.Object.Labels = map[string]string{"a": "b"}
			return nil
		}, `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`},
		"a finalizer": {"so are finalizers", func(a *Admission) error {
			a.Object.Finalizers = append(a.Object.Finalizers, "a.b/c")
			return nil
		}, `[{"op":"add","path":"/metadata/finalizers","value":["a.b/c"]}]`},
		"the identity": {"it is not the handler's to change", func(a *Admission) error {
			a.Object.Name, a.Object.UID, a.Object.Kind = "other", "other", "Other"
			return nil
		}, "null"},
		"undone": {"nothing is left of it", func(a *Admission) error {
			a.Object.Spec.Size = 3
			a.Patch(func(w *Widget) { w.Spec.Size = 0 })
			return nil
		}, "null"},
		"replaced": {"another object in the field is what is wanted", func(a *Admission) error {
			a.Object = a.Latest()
			a.Object.Spec.Size = 3
			return nil
		}, `[{"op":"add","path":"/spec/size","value":3}]`},
		"a failed try": {"what the function did does not show", func(a *Admission) error {
			a.TryPatch(func(w *Widget) error { w.Spec.Size = 3; return errors.New("no") })
			return nil
		}, "null"},
		"an error": {"the request is denied, so nothing is to be changed", func(a *Admission) error {
			a.Object.Spec.Size = 3
			return errors.New("no")
		}, "null"},
		"through an interface": {"shared functions take a Patcher", func(a *Admission) error {
			func(p kopf.Call[*Widget]) { p.Patch(func(w *Widget) { w.Spec.Size = 3 }) }(a)
			return nil
		}, `[{"op":"add","path":"/spec/size","value":3}]`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org")
			kopf.For(op, &Widget{}).Mutate("fn", func(_ context.Context, a *Admission) error { return tc.act(a) })
			asked := request(nil)
			verdict := verdictOf(t.Context(), t, op, asked)
			want, got := mutated(t, asked["object"], ops(tc.want)), mutated(t, asked["object"], verdict.Patch)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s: -want, +got:\n%s\n%s", tc.reason, d, verdict.Patch)
			}
		})
	}
}

func ops(text string) []byte {
	if text == "null" {
		return nil
	}
	return []byte(text)
}

// Handlers work on what those before them made of the object: D-admission-in-turn.
func TestMutateInTurn(t *testing.T) {
	op := kopf.New("test.example.org")
	widgets := kopf.For(op, &Widget{})
	var seen []int32
	for _, id := range []string{"a", "b", "c"} {
		widgets.Mutate(id, func(_ context.Context, a *Admission) error {
			seen = append(seen, a.Object.Spec.Size)
			a.Object.Spec.Size += 2
			return nil
		})
	}
	asked := request(nil)
	after := mutated(t, asked["object"], verdictOf(t.Context(), t, op, asked).Patch)
	if d := cmp.Diff([]int32{0, 2, 4}, seen); d != "" {
		t.Errorf("each sees what those before it have changed: -want, +got:\n%s", d)
	}
	spec, _ := after["spec"].(map[string]any)
	if got := fmt.Sprint(spec["size"]); got != "6" {
		t.Errorf("what comes out is that of all: got %s, want 6", got)
	}
}

// Of two handlers with one id, which are asked together where there is one path for both, either denies:
// D-admission-either.
func TestOneIDForBothTypes(t *testing.T) {
	for name, validatesFirst := range map[string]bool{"validating first": true, "mutating first": false} {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org", kopf.AsKopf())
			widgets := kopf.For(op, &Widget{})
			deny := func(context.Context, *Admission) error { return kopf.Deny(403, "no") }
			if validatesFirst {
				widgets.Validate("fn", deny)
			}
			widgets.Mutate("fn", func(context.Context, *Admission) error { return nil })
			if !validatesFirst {
				widgets.Validate("fn", deny)
			}
			if verdict := verdictOf(t.Context(), t, op, request(nil)); verdict.Allowed || verdict.Status.Code != 403 {
				t.Errorf("got %+v", verdict)
			}
		})
	}
}

func TestMutateUntyped(t *testing.T) {
	op := kopf.New("test.example.org")
	kopf.ForResource(op, "widgets").Mutate("fn", func(_ context.Context, a *RawAdmission) error {
		if err := kopf.SetField(a.Object, "spec.size", 3); err != nil {
			return err
		}
		return kopf.RemoveField(a.Object, "spec.unknown")
	})
	asked := request(nil)
	want := `[{"op":"add","path":"/spec/size","value":3},{"op":"remove","path":"/spec/unknown"}]`
	if got := string(verdictOf(t.Context(), t, op, asked).Patch); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What handlers say decides, and whoever has made the request is told.
func TestDenials(t *testing.T) {
	notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "owners"}, "ann")
	tests := map[string]struct {
		reason  string
		err     error
		message string
		code    int32
	}{
		"nothing":        {reason: "nil allows"},
		"denial":         {"the code is the handler's", kopf.Deny(http.StatusForbidden, "no %s", "way"), "no way", 403},
		"wrapped denial": {"whoever wraps it", fmt.Errorf("sorry: %w", kopf.Deny(409, "later")), "sorry: later", 409},
		"no code":        {"an error has one", kopf.Deny(0, "no"), "no", 500},
		"no text":        {"the user is told something", kopf.Deny(403, ""), `handler "fn" gives no reason`, 403},
		"of the API":     {"it has a code already", notFound, `owners "ann" not found`, 404},
		"wrapped of the API": {
			"the text is the handler's", fmt.Errorf("the owner: %w", notFound),
			`the owner: owners "ann" not found`, 404,
		},
		"ordinary": {"any error denies", errors.New("no"), "no", 500},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org")
			kopf.For(op, &Widget{}).Validate("fn", func(context.Context, *Admission) error { return tc.err })
			verdict := verdictOf(t.Context(), t, op, request(nil))
			if verdict.Allowed != (tc.err == nil) {
				t.Fatalf("%s: allowed: %v", tc.reason, verdict.Allowed)
			}
			if tc.err != nil && (verdict.Status.Message != tc.message || verdict.Status.Code != tc.code) {
				t.Errorf("%s: got %+v, want %q, %d", tc.reason, *verdict.Status, tc.message, tc.code)
			}
		})
	}
}

// A panic of whatever function denies the request, and nothing else.
func TestAdmissionPanics(t *testing.T) {
	op := kopf.New("test.example.org")
	widgets := kopf.For(op, &Widget{})
	widgets.Validate("panics", func(_ context.Context, a *Admission) error { panic(a.Name) })
	widgets.Mutate("nil", func(_ context.Context, a *Admission) error { a.Object = nil; return nil })
	widgets.Mutate("patch", func(_ context.Context, a *Admission) error {
		a.Patch(func(w *Widget) { w.Spec.Extra["a"] = "b" })
		return nil
	})
	widgets.Mutate("goexit", func(context.Context, *Admission) error { goexit(); return nil })
	verdict := verdictOf(t.Context(), t, op, request(nil))
	if verdict.Allowed || verdict.Patch != nil || verdict.Status.Message != "panic: w1" {
		t.Errorf("got %+v, %+v", verdict, verdict.Status)
	}
}
