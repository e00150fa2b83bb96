package compact

import (
	"fmt"
	"strings"
	"sync"
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

// textOf is an object with some fields, from one to another one, the texts of which have nothing twice.
func textOf(name, first, end int) []byte {
	text := fmt.Appendf(nil, `{"metadata":{"name":"n%03d"}`, name)
	for i := first; i < end; i++ {
		text = fmt.Appendf(text, `,"%x":"%x"`, i*7919+1, (i+3)*(i+5)*104729)
	}
	return append(text, '}')
}

// Another dictionary is taken once objects have more in common.
func TestDictionariesOfObjectsThatGrow(t *testing.T) {
	tests := map[string]struct {
		reason string
		text   func(number int) []byte // of the objects, one by one
		better bool                    // the last one takes less than a fourth of the first one that is like it
	}{
		"AllGrow": {
			"operators write the same to all of them", func(number int) []byte {
				if number < ordinary {
					return textOf(number, 0, 10)
				}
				return textOf(number, 0, 40)
			}, true,
		},
		"SomeGrow": {
			"those that have more are the ones that count", func(number int) []byte {
				if number < ordinary || number%3 > 0 {
					return textOf(number, 0, 10)
				}
				return textOf(number, 0, 40)
			}, true,
		},
		"SomeAreUnlikeAllOthers": {
			"they are not chosen", func(number int) []byte {
				if number%ordinary == 3 {
					return textOf(number, 100, 400)
				}
				return textOf(number, 0, 20)
			}, false,
		},
		"LargeOnes": {
			"an object that is too large for a dictionary is kept as all others", func(number int) []byte {
				if number%ordinary == 5 {
					return textOf(number, 0, 5000)
				}
				return textOf(number, 0, 20)
			}, false,
		},
		"SomeAreUnlikeAllOthersLater": {
			"a dictionary is not given up for a worse one", func(number int) []byte {
				if number%ordinary == 3 && number > ordinary {
					return textOf(number, 100, 125)
				}
				return textOf(number, 0, 20)
			}, false,
		},
		"NothingToGain": {
			"the first one does as well", func(number int) []byte { return textOf(number, 0, 20) }, false,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			packer, sizes := NewPacker(nil), map[int][]int{} // by the lengths of the texts
			last := rarer*rarer*ordinary - 2                 // which is a multiple of three
			for number := range last + 1 {
				text := tc.text(number)
				o, err := packer.New(text, metav1.TypeMeta{})
				if err != nil {
					t.Fatal(err)
				}
				if got, err := o.Text(); string(got) != string(text) || err != nil {
					t.Fatalf("object %d: got %s, %v", number, got, err)
				}
				if number >= ordinary {
					sizes[len(text)] = append(sizes[len(text)], len(o.packed))
				}
			}
			like := sizes[len(tc.text(last))]
			before, now := like[0], like[len(like)-1]
			if better := 4*now < before; better != tc.better || now > before+4 { // as names differ
				t.Errorf("%s: at last, an object takes %d bytes, with the first dictionary %d", tc.reason, now, before)
			}
			if whole := len(tc.text(last)); 10*now > whole {
				t.Errorf("%s: an object takes %d of its %d bytes", tc.reason, now, whole)
			}
		})
	}
}

// Many goroutines may pack at once, also while a dictionary is chosen.
func TestPackersOfManyGoroutines(t *testing.T) {
	packer := NewPacker(nil)
	var all sync.WaitGroup
	for who := range 4 {
		all.Go(func() {
			for i := range 3 * rarer * ordinary {
				text := textOf(who, 0, 10+i/ordinary)
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
