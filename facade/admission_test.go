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
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
)

type (
	Admission    = kopf.Admission[*Widget]
	RawAdmission = kopf.Admission[*kopf.Unstructured]
)

// request returns a request to create a widget, with the edited fields.
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

// deletion returns a request to delete the widget.
func deletion() map[string]any {
	asked := request(nil)
	asked["operation"], asked["object"], asked["oldObject"] = "DELETE", nil, asked["object"]
	return asked
}

// verdictOf reviews a request with the operator's handlers.
func verdictOf(ctx context.Context, t *testing.T, op *kopf.Operator, asked map[string]any) review.ObjectVerdict {
	t.Helper()
	return reviewerOf(t, op).ask(ctx, t, asked)
}

type reviewer struct{ review.Reviewer }

// reviewerOf returns a reviewer with the operator's handlers, as if all of them were for widgets.
func reviewerOf(t *testing.T, op *kopf.Operator) *reviewer {
	t.Helper()
	plan, err := kopf.Plan(op, newScheme(t))
	if err != nil {
		t.Fatalf("setting up: %v", err)
	}
	served := review.ServedResource{Resource: discovery.Resource{
		GroupVersionKind: schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"},
		Plural:           "widgets", Namespaced: true, Verbs: []string{"list"},
	}}
	for _, one := range plan {
		served.Handlers = append(served.Handlers, adapters.New(one.Handler, nil))
	}
	served.Handlers = adapters.ByFamily(served.Handlers).Admitting
	return &reviewer{review.Reviewer{
		ServedResources: func() []review.ServedResource { return []review.ServedResource{served} },
	}}
}

func (r *reviewer) ask(ctx context.Context, t *testing.T, asked map[string]any) review.ObjectVerdict {
	t.Helper()
	text, err := json.Marshal(map[string]any{"request": asked})
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.Review(ctx, review.EndpointRequest{Body: text, Headers: http.Header{"A": {"b"}}})
	if err != nil {
		t.Fatalf("reviewing: %v", err)
	}
	return out.Response
}

// applyOperations applies the patch operations to the object, as the API server does.
func applyOperations(t *testing.T, object any, operations []byte) map[string]any {
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

// TestMutate shows which patch results from the changes of a mutating handler.
func TestMutate(t *testing.T) {
	tests := map[string]struct {
		reason string
		act    func(a *Admission) error
		want   string // the operations
	}{
		"nothing": {"a handler without changes makes no patch", func(*Admission) error { return nil }, "null"},
		"in place": {"a change in place patches only the changed field", func(a *Admission) error {
			a.Object.Spec.Size = 3
			return nil
		}, `[{"op":"add","path":"/spec/size","value":3}]`},
		"by patch": {"Patch changes the object as in change handlers", func(a *Admission) error {
			a.Patch(func(w *Widget) { w.Spec.Size = 3 })
			return nil
		}, `[{"op":"add","path":"/spec/size","value":3}]`},
		"both": {"Patch and changes in place see each other", func(a *Admission) error {
			a.Object.Spec.Size = 3
			a.Patch(func(w *Widget) { w.Spec.Size++ })
			a.Object.Spec.Size *= 2
			return nil
		}, `[{"op":"add","path":"/spec/size","value":8}]`},
		"an item of a list": {"a changed list item keeps fields that T does not have", func(a *Admission) error {
			a.Object.Spec.Parts[0].Count = 2
			return nil
		}, `[{"op":"replace","path":"/spec/parts","value":[{"color":"red","count":2,"name":"p"}]}]`},
		"removed": {"a field can be removed", func(a *Admission) error {
			a.Object.Spec.Parts = nil
			return nil
		}, `[{"op":"remove","path":"/spec/parts"}]`},
		"a label": {"a label can be set", func(a *Admission) error {
			a.Object.Labels = map[string]string{"a": "b"}
			return nil
		}, `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`},
		"a finalizer": {"a finalizer can be added", func(a *Admission) error {
			a.Object.Finalizers = append(a.Object.Finalizers, "a.b/c")
			return nil
		}, `[{"op":"add","path":"/metadata/finalizers","value":["a.b/c"]}]`},
		"the identity": {"changes of name, UID and kind are ignored", func(a *Admission) error {
			a.Object.Name, a.Object.UID, a.Object.Kind = "other", "other", "Other"
			return nil
		}, "null"},
		"undone": {"a change that is undone makes no patch", func(a *Admission) error {
			a.Object.Spec.Size = 3
			a.Patch(func(w *Widget) { w.Spec.Size = 0 })
			return nil
		}, "null"},
		"replaced": {"replacing a.Object counts as a change", func(a *Admission) error {
			a.Object = a.Latest()
			a.Object.Spec.Size = 3
			return nil
		}, `[{"op":"add","path":"/spec/size","value":3}]`},
		"a failed try": {"a failed TryPatch changes nothing", func(a *Admission) error {
			a.TryPatch(func(w *Widget) error { w.Spec.Size = 3; return errors.New("no") })
			return nil
		}, "null"},
		"an error": {"an error of the handler discards its changes", func(a *Admission) error {
			a.Object.Spec.Size = 3
			return errors.New("no")
		}, "null"},
		"through an interface": {"a patch through the Call interface is applied", func(a *Admission) error {
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
			want, got := applyOperations(t, asked["object"], ops(tc.want)),
				applyOperations(t, asked["object"], verdict.Patch)
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

// TestMutateInTurn shows that each mutating handler gets the object with the changes of the handlers before it.
// Deviation: D-admission-in-turn.
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
	after := applyOperations(t, asked["object"], verdictOf(t.Context(), t, op, asked).Patch)
	if d := cmp.Diff([]int32{0, 2, 4}, seen); d != "" {
		t.Errorf("each handler sees the changes of the handlers before it: -want, +got:\n%s", d)
	}
	spec, _ := after["spec"].(map[string]any)
	if got := fmt.Sprint(spec["size"]); got != "6" {
		t.Errorf("the patch has the changes of all handlers: got %s, want 6", got)
	}
}

// TestOneIDForBothTypes shows that a denial counts if a validating and a mutating handler share one id, and with
// AsKopf one path. Deviation: D-admission-either.
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
				t.Errorf("the denial counts: got %+v", verdict)
			}
		})
	}
}

// TestDenials shows how the error of a handler becomes the message and the code of the response.
func TestDenials(t *testing.T) {
	notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "owners"}, "ann")
	tests := map[string]struct {
		reason  string
		err     error
		message string
		code    int32
	}{
		"nothing": {reason: "a nil error allows the request"},
		"denial": {
			"a denial has the code of the handler", kopf.Deny(http.StatusForbidden, "no %s", "way"), "no way", 403},
		"wrapped denial": {
			"a wrapped denial keeps its code", fmt.Errorf("sorry: %w", kopf.Deny(409, "later")), "sorry: later", 409},
		"no code": {"code 0 becomes 500", kopf.Deny(0, "no"), "no", 500},
		"no text": {
			"an empty message gets a default text", kopf.Deny(403, ""), `handler "fn" gives no reason`, 403},
		"of the API": {"an API error keeps its code", notFound, `owners "ann" not found`, 404},
		"wrapped of the API": {
			"a wrapped API error has the code and the handler's text", fmt.Errorf("the owner: %w", notFound),
			`the owner: owners "ann" not found`, 404,
		},
		"ordinary": {"an ordinary error denies with code 500", errors.New("no"), "no", 500},
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

// TestAdmissionPanics shows that a panic of a handler denies the request and does not stop the process.
func TestAdmissionPanics(t *testing.T) {
	op := kopf.New("test.example.org")
	widgets := kopf.For(op, &Widget{})
	widgets.Validate("panics", func(_ context.Context, a *Admission) error { panic(a.Name) })
	widgets.Mutate("nil", func(_ context.Context, a *Admission) error { a.Object = nil; return nil })
	widgets.Mutate("patch", func(_ context.Context, a *Admission) error {
		a.Patch(func(w *Widget) { w.Spec.Extra["a"] = "b" })
		return nil
	})
	widgets.Mutate("goexit", func(context.Context, *Admission) error { exitGoroutine(); return nil })
	verdict := verdictOf(t.Context(), t, op, request(nil))
	if verdict.Allowed || verdict.Patch != nil || verdict.Status.Message != "panic: w1" {
		t.Errorf("a panic denies the request: got %+v, %+v", verdict, verdict.Status)
	}
}
