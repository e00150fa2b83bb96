package handlers_test

import (
	"testing"

	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
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
		"OtherID": {
			"another handler is asked", handlers.Handler{ID: "a"}, &asked{ID: ptr.To("b")}, false,
		},
	} {
		if got := tc.handler.Answers(tc.review); got != tc.want {
			t.Errorf("%s: %s: got %v, want %v", name, tc.reason, got, tc.want)
		}
	}
}

func TestFullIDOfTheEmptyKey(t *testing.T) {
	for want, field := range map[string]diff.Path{"fn": {""}, "fn/.": {"", ""}, "fn/spec": {"spec"}} {
		if got := (&handlers.Handler{ID: "fn", Field: field}).FullID(); got != want {
			t.Errorf("the id of %q: got %s, want %s, as Kopf has it", field, got, want)
		}
	}
}
