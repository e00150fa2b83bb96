package handlers_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

func TestAnswers(t *testing.T) {
	type asked = handlers.Admission
	created := []string{"CREATE"}
	for name, tc := range map[string]struct {
		reason  string
		handler handlers.Handler
		review  *handlers.Admission
		want    bool
	}{
		"Any": {"who asks for nothing gets all", handlers.Handler{}, &asked{}, true},
		"UnknownOperation": {
			"what is not known is not among those asked for", handlers.Handler{Operations: created}, &asked{},
			false,
		},
		"ItsOperation": {
			"it is asked for", handlers.Handler{Operations: created}, &asked{Operation: "CREATE"}, true,
		},
		"ValidatingAsked": {"its configuration asks", handlers.Handler{}, &asked{Type: "validating"}, true},
		"MutatingAsked": {
			"the other configuration asks", handlers.Handler{}, &asked{Type: "mutating"}, false,
		},
		"Mutating": {
			"its configuration asks", handlers.Handler{Mutating: true}, &asked{Type: "mutating"}, true,
		},
		"Deletion": {
			"nothing can be changed of what goes", handlers.Handler{Mutating: true}, &asked{Operation: "DELETE"}, false,
		},
		"DeletionAskedFor": {
			"it has asked for nothing else", handlers.Handler{Mutating: true, Operations: []string{"DELETE"}},
			&asked{Operation: "DELETE"}, true,
		},
		"DeletionAmongOthers": {
			"it is meant for the others", handlers.Handler{Mutating: true, Operations: []string{"DELETE", "CREATE"}},
			&asked{Operation: "DELETE"}, false,
		},
		"ValidatedDeletion": {"it may be forbidden", handlers.Handler{}, &asked{Operation: "DELETE"}, true},
		"AnySubresource": {
			"it asks for all", handlers.Handler{Subresource: "*"}, &asked{Subresource: "scale"}, true,
		},
		"NoSubresource": {"among them none", handlers.Handler{Subresource: "*"}, &asked{}, true},
		"ItsSubresource": {
			"it asks for this one", handlers.Handler{Subresource: "scale"}, &asked{Subresource: "scale"}, true,
		},
		"OtherSubresource": {
			"it asks for another one", handlers.Handler{Subresource: "status"}, &asked{Subresource: "scale"}, false,
		},
		"OtherID": {
			"another handler is asked", handlers.Handler{ID: "a"}, &asked{ID: ptr.To("b")}, false,
		},
	} {
		if got := tc.handler.Answers(tc.review); got != tc.want {
			t.Errorf("%s: %s: got %v, want %v", name, tc.reason, got, tc.want)
		}
	}
}

func TestAdmittedBody(t *testing.T) {
	fresh, old := jsontext.Of(object{"a": "b"}), jsontext.Of(object{"c": "d"})
	for reason, tc := range map[string]struct {
		review *handlers.Admission
		want   *jsontext.Object
	}{
		"an update is about what is to be":       {&handlers.Admission{Object: fresh, Old: old}, fresh},
		"a deletion is about what is":            {&handlers.Admission{Old: old}, old},
		"a connection is about no object at all": {&handlers.Admission{}, nil},
	} {
		if got := tc.review.Body(); got != tc.want {
			t.Errorf("%s: got %v", reason, got)
		}
	}
}

func TestKeptOnce(t *testing.T) {
	var review handlers.Admission
	made := 0
	for range 2 {
		for key := range 2 {
			if got := review.Keep(key, func() any { made++; return key }); got != key {
				t.Errorf("key %v: got %v", key, got)
			}
		}
	}
	if made != 2 {
		t.Errorf("made %d times for two keys", made)
	}
}

// All handlers of a request add to one merge-patch.
func TestMerged(t *testing.T) {
	var review handlers.Admission
	if got := review.Merged(); got != nil {
		t.Errorf("nobody has said anything: %v", got)
	}
	mine := object{"spec": object{"a": "1", "b": object{"c": "2"}}, "kind": object{"x": "y"}}
	review.Merge(mine)
	review.Merge(object{"spec": object{"b": object{"d": "3"}, "a": object{"deep": "4"}}, "kind": "z"})
	want := object{"spec": object{"a": object{"deep": "4"}, "b": object{"c": "2", "d": "3"}}, "kind": "z"}
	if d := cmp.Diff(want, review.Merged()); d != "" {
		t.Errorf("mappings are merged, all else is replaced: -want, +got:\n%s", d)
	}
	if d := cmp.Diff(object{"a": "1", "b": object{"c": "2"}}, mine["spec"]); d != "" {
		t.Errorf("what a handler has given was changed: -want, +got:\n%s", d)
	}
}

func TestFullIDOfTheEmptyKey(t *testing.T) {
	for want, field := range map[string]diff.Path{"fn": {""}, "fn/.": {"", ""}, "fn/spec": {"spec"}} {
		if got := (&handlers.Handler{ID: "fn", Field: field}).FullID(); got != want {
			t.Errorf("the id of %q: got %s, want %s, as Kopf has it", field, got, want)
		}
	}
}
