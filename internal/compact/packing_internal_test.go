package compact

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/s2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestPackersKeepOnceWhatIsCommon shows that the common parts of objects are kept once.
func TestPackersKeepOnceWhatIsCommon(t *testing.T) {
	var common strings.Builder // without repetitions
	for i := range 150 {
		fmt.Fprintf(&common, "%x", i*i*7919)
	}
	kept := func(packer *Packer) (bytes int) {
		for i := range 10 * sampleSize {
			text := fmt.Appendf(nil, `{"metadata":{"name":"n%d"},"spec":"%s"}`, i, &common)
			o, err := packer.New(text, metav1.TypeMeta{})
			if err != nil {
				t.Fatal(err)
			}
			bytes += len(o.packedContent)
		}
		return bytes
	}
	if together, alone := kept(NewPacker(nil)), kept(nil); 5*together > alone {
		t.Errorf("together they take %d bytes, and each by itself %d", together, alone)
	}
}

// textOf returns an object with a range of fields, whose texts contain no repetitions.
func textOf(name, first, end int) []byte {
	text := fmt.Appendf(nil, `{"metadata":{"name":"n%03d"}`, name)
	for i := first; i < end; i++ {
		text = fmt.Appendf(text, `,"%x":"%x"`, i*7919+1, (i+3)*(i+5)*104729)
	}
	return append(text, '}')
}

// TestDictionariesOfObjectsThatGrow shows that a dictionary is replaced when objects have more in common.
func TestDictionariesOfObjectsThatGrow(t *testing.T) {
	tests := map[string]struct {
		reason string
		text   func(number int) []byte // one object after another
		better bool                    // the last object takes less than a fourth of the first one of its length
	}{
		"AllGrow": {
			"a dictionary is replaced if all objects grow", func(number int) []byte {
				if number < sampleSize {
					return textOf(number, 0, 10)
				}
				return textOf(number, 0, 40)
			}, true,
		},
		"SomeGrow": {
			"a dictionary is replaced if some objects grow, as they take more", func(number int) []byte {
				if number < sampleSize || number%3 > 0 {
					return textOf(number, 0, 10)
				}
				return textOf(number, 0, 40)
			}, true,
		},
		"SomeAreUnlikeAllOthers": {
			"an object unlike the others does not become the dictionary", func(number int) []byte {
				if number%sampleSize == 3 {
					return textOf(number, 100, 400)
				}
				return textOf(number, 0, 20)
			}, false,
		},
		"LargeOnes": {
			"an object that is too large for a dictionary is kept like others", func(number int) []byte {
				if number%sampleSize == 5 {
					return textOf(number, 0, 5000)
				}
				return textOf(number, 0, 20)
			}, false,
		},
		"SomeAreUnlikeAllOthersLater": {
			"a dictionary is not replaced by a worse one", func(number int) []byte {
				if number%sampleSize == 3 && number > sampleSize {
					return textOf(number, 100, 125)
				}
				return textOf(number, 0, 20)
			}, false,
		},
		"NothingToGain": {
			"a dictionary is not replaced without a gain",
			func(number int) []byte { return textOf(number, 0, 20) }, false,
		},
	}
	const keepsDictionary = "NothingToGain"
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			packer, sizes := NewPacker(nil), map[int][]int{} // by the lengths of the texts
			used := map[*s2.Dict]bool{}
			last := intervalFactor*intervalFactor*sampleSize - 2 // a multiple of three
			for number := range last + 1 {
				text := tc.text(number)
				o, err := packer.New(text, metav1.TypeMeta{})
				if err != nil {
					t.Fatal(err)
				}
				if got, err := o.Text(); string(got) != string(text) || err != nil {
					t.Fatalf("object %d: got %s, %v", number, got, err)
				}
				if number >= sampleSize {
					used[o.packedDictionary()] = true
					sizes[len(text)] = append(sizes[len(text)], len(o.packedContent))
				}
			}
			like := sizes[len(tc.text(last))]
			before, now := like[0], like[len(like)-1]
			if better := 4*now < before; better != tc.better || now > before+4 { // names differ
				t.Errorf("%s: the last object takes %d bytes, and %d with the first dictionary", tc.reason, now, before)
			}
			if name == keepsDictionary && len(used) != 1 {
				t.Errorf("%s: %d dictionaries were used", tc.reason, len(used))
			}
			if whole := len(tc.text(last)); 10*now > whole {
				t.Errorf("%s: an object takes %d of its %d bytes", tc.reason, now, whole)
			}
		})
	}
}

// TestPackersOfManyGoroutines shows that several goroutines can use one packer, also while a dictionary is chosen.
func TestPackersOfManyGoroutines(t *testing.T) {
	packer := NewPacker(nil)
	var all sync.WaitGroup
	for who := range 4 {
		all.Go(func() {
			for i := range 3 * intervalFactor * sampleSize {
				text := textOf(who, 0, 10+i/sampleSize)
				o, err := packer.New(text, metav1.TypeMeta{})
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := o.Text(); string(got) != string(text) || err != nil {
					t.Errorf("got %s, %v", got, err)
				}
			}
		})
	}
	all.Wait()
}
