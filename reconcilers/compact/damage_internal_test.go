package compact

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Damage is an error of the object that is damaged, or another text of it: nothing panics, and nothing is taken along.
func TestDamagedBytes(t *testing.T) {
	text := `{"metadata":{"name":"a"},"spec":{"list":["some text","some text","some text","some text"]}}`
	other, err := New([]byte(text), metav1.TypeMeta{})
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for at := range other.packed {
		for bit := range 8 {
			o, err := New([]byte(text), metav1.TypeMeta{})
			if err != nil {
				t.Fatal(err)
			}
			o.packed[at] ^= 1 << bit
			if _, err := o.Body(); err != nil {
				failed++
			}
		}
	}
	if failed == 0 {
		t.Error("no damage was ever noticed")
	}
	if kept, err := other.Text(); string(kept) != text || err != nil {
		t.Errorf("another object is %s: %v", kept, err)
	}
}
