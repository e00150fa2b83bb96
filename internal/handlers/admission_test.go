package handlers_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

func TestAnswers(t *testing.T) {
	type asked = handlers.AdmissionRequest
	created := []string{"CREATE"}
	for name, tc := range map[string]struct {
		reason  string
		handler handlers.Handler
		review  *handlers.AdmissionRequest
		want    bool
	}{
		"Any": {"a handler without criteria accepts any request", handlers.Handler{}, &asked{}, true},
		"UnknownOperation": {
			"a handler of one operation ignores a request with an unknown operation",
			handlers.Handler{Operations: created}, &asked{},
			false,
		},
		"ItsOperation": {
			"a handler of one operation accepts a request with this operation",
			handlers.Handler{Operations: created}, &asked{Operation: "CREATE"}, true,
		},
		"ValidatingAsked": {"a validating handler accepts requests of the validating webhook",
			handlers.Handler{}, &asked{Type: "validating"}, true},
		"MutatingAsked": {
			"a validating handler ignores requests of the mutating webhook",
			handlers.Handler{}, &asked{Type: "mutating"}, false,
		},
		"Mutating": {
			"a mutating handler accepts requests of the mutating webhook",
			handlers.Handler{Mutating: true}, &asked{Type: "mutating"}, true,
		},
		"Deletion": {
			"a mutating handler without operations ignores deletions",
			handlers.Handler{Mutating: true}, &asked{Operation: "DELETE"}, false,
		},
		"DeletionAskedFor": {
			"a mutating handler of deletions only accepts deletions",
			handlers.Handler{Mutating: true, Operations: []string{"DELETE"}},
			&asked{Operation: "DELETE"}, true,
		},
		"DeletionAmongOthers": {
			"a mutating handler of several operations ignores deletions",
			handlers.Handler{Mutating: true, Operations: []string{"DELETE", "CREATE"}},
			&asked{Operation: "DELETE"}, false,
		},
		"ValidatedDeletion": {"a validating handler accepts deletions",
			handlers.Handler{}, &asked{Operation: "DELETE"}, true},
		"AnySubresource": {
			"a handler of any subresource accepts a request with a subresource",
			handlers.Handler{Subresource: "*"}, &asked{Subresource: "scale"}, true,
		},
		"NoSubresource": {"a handler of any subresource accepts a request without one",
			handlers.Handler{Subresource: "*"}, &asked{}, true},
		"ItsSubresource": {
			"a handler of one subresource accepts a request with it",
			handlers.Handler{Subresource: "scale"}, &asked{Subresource: "scale"}, true,
		},
		"OtherSubresource": {
			"a handler of one subresource ignores a request with another one",
			handlers.Handler{Subresource: "status"}, &asked{Subresource: "scale"}, false,
		},
		"OtherID": {
			"a handler ignores a request for another handler id",
			handlers.Handler{ID: "a"}, &asked{ID: ptr.To("b")}, false,
		},
	} {
		if got := tc.handler.AcceptsRequest(tc.review); got != tc.want {
			t.Errorf("%s: %s: got %v, want %v", name, tc.reason, got, tc.want)
		}
	}
}

func TestAdmittedBody(t *testing.T) {
	fresh, old := jsontext.NewFromValue(object{"a": "b"}), jsontext.NewFromValue(object{"c": "d"})
	for reason, tc := range map[string]struct {
		review *handlers.AdmissionRequest
		want   *jsontext.LazyObject
	}{
		"an update reviews the new object":  {&handlers.AdmissionRequest{Object: fresh, Old: old}, fresh},
		"a deletion reviews the old object": {&handlers.AdmissionRequest{Old: old}, old},
		"a connection reviews no object":    {&handlers.AdmissionRequest{}, nil},
	} {
		if got := tc.review.ReviewedObject(); got != tc.want {
			t.Errorf("%s: got %v", reason, got)
		}
	}
}

func TestKeptOnce(t *testing.T) {
	var review handlers.AdmissionRequest
	made := 0
	for range 2 {
		for key := range 2 {
			if got := review.SharedValue(key, func() any { made++; return key }); got != key {
				t.Errorf("key %v: got %v", key, got)
			}
		}
	}
	if made != 2 {
		t.Errorf("want 2 values made for two keys, got %d", made)
	}
}

// TestMerged shows that all handlers of a request add to one merge patch.
func TestMerged(t *testing.T) {
	var review handlers.AdmissionRequest
	if got := review.MergePatch(); got != nil {
		t.Errorf("want no patch without changes, got %v", got)
	}
	mine := object{"spec": object{"a": "1", "b": object{"c": "2"}}, "kind": object{"x": "y"}}
	review.AddMergePatch(mine)
	review.AddMergePatch(object{"spec": object{"b": object{"d": "3"}, "a": object{"deep": "4"}}, "kind": "z"})
	want := object{"spec": object{"a": object{"deep": "4"}, "b": object{"c": "2", "d": "3"}}, "kind": "z"}
	if d := cmp.Diff(want, review.MergePatch()); d != "" {
		t.Errorf("want mappings merged and all other values replaced: -want, +got:\n%s", d)
	}
	if d := cmp.Diff(object{"a": "1", "b": object{"c": "2"}}, mine["spec"]); d != "" {
		t.Errorf("the patch of a handler was modified: -want, +got:\n%s", d)
	}
}

func TestFullIDOfTheEmptyKey(t *testing.T) {
	for want, field := range map[string]diff.Path{"fn": {""}, "fn/.": {"", ""}, "fn/spec": {"spec"}} {
		if got := (&handlers.Handler{ID: "fn", Field: field}).FullID(); got != want {
			t.Errorf("the id of %q: got %s, want %s, as in Kopf", field, got, want)
		}
	}
}
