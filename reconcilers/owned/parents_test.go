package owned_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
)

// TestMayBeChild shows which objects are possible children by their metadata, and thus must be kept as a whole.
func TestMayBeChild(t *testing.T) {
	pods := schema.GroupKind{Kind: "Pod"}
	known := &owned.Children{Label: label}
	known.AddParents(pods, []schema.GroupKind{{Group: "example.org", Kind: "Owner"}})
	known.AddParents(pods, []schema.GroupKind{{Kind: "Node"}})
	const ownerOf = `{"name":"p","ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"1"},`
	tests := map[string]struct {
		reason, metadata string
		want             bool
	}{
		"Nobody": {"an object without owner is not a child", `{"name":"p","labels":{"app":"shop"}}`, false},
		"Stranger": {"an object with an owner of another kind is not a child",
			ownerOf + `{"kind":"Owner","apiVersion":"v1","uid":"2"}]}`, false},
		"Parent": {"an owner reference may have any version of the parent kind",
			ownerOf + `{"kind":"Owner","apiVersion":"example.org/v9","uid":"2"}]}`, true},
		"SecondParent": {"an owner reference may name any added parent kind",
			ownerOf + `{"kind":"Node","apiVersion":"v1","uid":"2"}]}`, true},
		"Label": {"an object with the label of a declared child is a child",
			`{"name":"p","labels":{"` + label + `":"2"}}`, true},
		"NoUID": {"an empty label does not name a parent", `{"name":"p","labels":{"` + label + `":""}}`, false},
		"Annotation": {"an annotation does not count like a label",
			`{"name":"p","annotations":{"` + label + `":"2","x":"\"ownerReferences\""}}`, false},
		"Malformed": {"an object with malformed metadata is kept unreduced",
			`{"name":"p","labels":{"` + label + `":5}}`, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := known.MayBeChild(pods)([]byte(tc.metadata)); got != tc.want {
				t.Errorf("%s: got %t for %s", tc.reason, got, tc.metadata)
			}
		})
	}
	if known.MayBeChild(schema.GroupKind{Kind: "Secret"})([]byte(ownerOf + `{"kind":"Node","apiVersion":"v1"}]}`)) {
		t.Error("parents of one kind of children count for another kind")
	}
}
