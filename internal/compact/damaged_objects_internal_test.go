package compact

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// damagePacked modifies the packed bytes of an object.
func damagePacked(o *CachedObject, how func(packed []byte)) {
	packed := []byte(o.packedContent)
	how(packed)
	o.packedContent = string(packed)
}

// TestDamagedBytes shows that damage leads to an error or another text of the damaged object, never to a panic or an
// effect on other objects.
func TestDamagedBytes(t *testing.T) {
	text := `{"metadata":{"name":"a"},"spec":{"list":["some text","some text","some text","some text"]}}`
	other, err := New([]byte(text), metav1.TypeMeta{})
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for at := range other.packedContent {
		for bit := range 8 {
			o, err := New([]byte(text), metav1.TypeMeta{})
			if err != nil {
				t.Fatal(err)
			}
			damagePacked(o, func(packed []byte) { packed[at] ^= 1 << bit })
			if _, err := o.Body(); err != nil {
				failed++
			}
		}
	}
	if failed == 0 {
		t.Error("no damage was detected")
	}
	if kept, err := other.Text(); string(kept) != text || err != nil {
		t.Errorf("another object is %s: %v", kept, err)
	}
}

// TestDamagedNeighbours shows that a damaged object does not affect others with the same dictionary.
func TestDamagedNeighbours(t *testing.T) {
	packer := NewPacker(nil)
	var all []*CachedObject
	for range 2 * sampleSize {
		text := `{"metadata":{"name":"a"},"spec":"some text that all of them have"}`
		o, err := packer.New([]byte(text), metav1.TypeMeta{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	if all[0].form != nil || all[sampleSize].form == nil {
		t.Fatal("want a dictionary from the first object after its choice")
	}
	damagePacked(all[sampleSize], func(packed []byte) { clear(packed) })
	if text, err := all[sampleSize].Text(); err == nil && len(text) > 0 {
		t.Errorf("the damaged object is %s", text)
	}
	for i, o := range all {
		if _, err := o.Body(); err != nil && i != sampleSize {
			t.Errorf("object %d was not damaged: %v", i, err)
		}
	}
}
