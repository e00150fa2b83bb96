package layers_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/layers"
)

func TestArrowsOf(t *testing.T) {
	cases := map[string]struct {
		reason string
		files  map[string]string
		all    []string
		upward []string
	}{
		"Downward": {
			reason: "functions, methods, fields and types of another file are uses of it",
			files: map[string]string{
				"types.go": "type value struct{ size int }\nfunc (v value) grow() {}",
				"steps.go": "func step(v value) int { v.grow(); return v.size }",
				"top.go":   "import \"other/package\"\nfunc Top() { step(value{}); other.Do() }",
			},
			all: []string{"steps.go uses types.go: grow size value", "top.go uses steps.go: step",
				"top.go uses types.go: value"},
		},
		"Circle": {
			reason: "one arrow of a circle of two files points upward in each order",
			files:  map[string]string{"a.go": "func a() { b() }", "b.go": "func b() { a() }"},
			all:    []string{"a.go uses b.go: b", "b.go uses a.go: a"},
			upward: []string{"a.go uses b.go: b"},
		},
		"Best": {
			reason: "the order of the files is the one with the fewest upward arrows",
			files: map[string]string{
				"a.go": "type base struct{}", "b.go": "func b(base) { d() }", "c.go": "func c(all base) { b(all) }",
				"d.go": "func d() { _ = base{} }",
			},
			all: []string{"b.go uses a.go: base", "b.go uses d.go: d", "c.go uses a.go: base", "c.go uses b.go: b",
				"d.go uses a.go: base"},
		},
		"Tests": {
			reason: "test files are left out, as they use everything",
			files:  map[string]string{"a.go": "func a() {}", "a_test.go": "func testA() { a() }"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sources := fstest.MapFS{}
			for file, text := range tc.files {
				sources["p/"+file] = &fstest.MapFile{Data: []byte("package p\n" + text + "\n")}
			}
			got, err := layers.ArrowsOf(sources, "p")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.all, arrowTexts(got.All)); diff != "" {
				t.Errorf("%s: all arrows: -want +got\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.upward, arrowTexts(got.Upward)); diff != "" {
				t.Errorf("%s: upward arrows: -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

func arrowTexts(arrows []layers.Arrow) (all []string) {
	for _, one := range arrows {
		all = append(all, fmt.Sprintf("%s uses %s: %s", one.From, one.To, strings.Join(one.Names, " ")))
	}
	return all
}

func TestCheckArrows(t *testing.T) {
	// Each pair of files uses each other: one of its two arrows points upward.
	pairs := func(count int) fstest.MapFS {
		sources := fstest.MapFS{"go.mod": {Data: []byte("module m\n")}}
		for i := range count {
			for _, ends := range [][2]string{{"a", "b"}, {"b", "a"}} {
				sources[fmt.Sprintf("p/%s%d.go", ends[0], i)] = &fstest.MapFile{
					Data: fmt.Appendf(nil, "package p\nfunc %s%d() { %s%d() }\n", ends[0], i, ends[1], i),
				}
			}
		}
		return sources
	}
	cases := map[string]struct {
		reason string
		count  int
		want   int
	}{
		"Few":  {"five upward arrows are allowed in each package", layers.MinUpward, 0},
		"Many": {"more upward arrows than the limit are a breach", layers.MinUpward + 1, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sources := pairs(tc.count)
			tree, err := layers.Load(sources)
			if err != nil {
				t.Fatal(err)
			}
			got, err := layers.CheckArrows(sources, tree, nil)
			if err != nil || len(got) != tc.want {
				t.Errorf("%s: got %v, %v, want %d breaches", tc.reason, got, err, tc.want)
			}
		})
	}
}
