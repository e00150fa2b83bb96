package compact

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What objects have in common is kept once.
func TestPackersKeepOnceWhatIsCommon(t *testing.T) {
	var common strings.Builder // which has nothing in it twice
	for i := range 150 {
		fmt.Fprintf(&common, "%x", i*i*7919)
	}
	kept := func(packer *Packer) (bytes int) {
		for i := range 10 * ordinary {
			text := fmt.Appendf(nil, `{"metadata":{"name":"n%d"},"spec":"%s"}`, i, &common)
			o, err := packer.New(text, metav1.TypeMeta{})
			if err != nil {
				t.Fatal(err)
			}
			bytes += len(o.packed)
		}
		return bytes
	}
	if together, alone := kept(NewPacker(nil)), kept(nil); 5*together > alone {
		t.Errorf("they take %d bytes, and each by itself %d", together, alone)
	}
}
