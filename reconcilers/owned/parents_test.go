package owned_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
)

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
		"Nobody": {"most objects have no owner", `{"name":"p","labels":{"app":"shop"}}`, false},
		"Stranger": {"the owner is of another kind",
			ownerOf + `{"kind":"Owner","apiVersion":"v1","uid":"2"}]}`, false},
		"Parent": {"any version of the kind",
			ownerOf + `{"kind":"Owner","apiVersion":"example.org/v9","uid":"2"}]}`, true},
		"SecondParent": {"kinds are added", ownerOf + `{"kind":"Node","apiVersion":"v1","uid":"2"}]}`, true},
		"Label":        {"what Ensure declares elsewhere", `{"name":"p","labels":{"` + label + `":"2"}}`, true},
		"NoUID":        {"an empty label names no parent", `{"name":"p","labels":{"` + label + `":""}}`, false},
		"Annotation": {"an annotation is not a label",
			`{"name":"p","annotations":{"` + label + `":"2","x":"\"ownerReferences\""}}`, false},
		"Malformed": {"a malformed object is kept as it is", `{"name":"p","labels":{"` + label + `":5}}`, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := known.MayBeChild(pods)([]byte(tc.metadata)); got != tc.want {
				t.Errorf("%s: got %t for %s", tc.reason, got, tc.metadata)
			}
		})
	}
	if known.MayBeChild(schema.GroupKind{Kind: "Secret"})([]byte(ownerOf + `{"kind":"Node","apiVersion":"v1"}]}`)) {
		t.Error("parents count for the kind of their children alone")
	}
}
