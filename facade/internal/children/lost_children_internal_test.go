package children

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestFormerVersionFindsNoRetainedChild shows that a former version cannot find retained children, while this version
// finds both kinds.
// A former version prunes the labelled objects whose annotation is exactly the name of a record that it restores.
func TestFormerVersionFindsNoRetainedChild(t *testing.T) {
	const key = "children-of.create"
	body := bodyOf("u", "a.org/other", "")
	p := &pass{
		keeper: &Keeper{Prefix: "a.org"}, recordName: "a.org/" + key,
		parent: Parent{NewestState: func() map[string]any { return body }},
	}
	// The same object is declared with the rule, without it, and with it again.
	object := &unstructured.Unstructured{Object: map[string]any{}}
	for _, retain := range []bool{true, false, true} {
		p.nameRecords(declaredChild{identity: config, object: object, rules: Rules{Retain: retain}})
		written := object.GetAnnotations()
		if found := written["a.org/declared-in"] == key; found == retain {
			t.Errorf("retained: %t, found by the former version: %t: %q", retain, found, written)
		}
		held := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: written}}
		if got := p.keeper.recordNames(held); got != key {
			t.Errorf("retained: %t: this version reads the record %q", retain, got)
		}
	}
}
