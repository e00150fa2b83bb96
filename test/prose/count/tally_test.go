package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCounts shows each rule of the package comment.
func TestCounts(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		source string
		want   tally
	}{
		"Names": {"a word begins with a capital letter after a small one",
			"package p\n\nfunc removeAPIKey() {}\n\nfunc (T) Get() {}\n",
			tally{code: 3, functions: 2, words: 3, oneWordNames: 1}},
		"Lines": {"a line with code and a comment counts for both",
			"package p // a\n\n/* b\nc */\nvar x = `\n`\n",
			tally{code: 3, comments: 3}},
		"Idioms": {"idioms count in comments only",
			"package p\n\n// What is here tells more, and what is there was told.\nvar x = \"what is here\"\n",
			tally{code: 2, comments: 1, whatClauseCount: 2, tellCount: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			var got tally
			if err := got.addFile("p/a.go", []byte(tc.source)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(tally{})); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestReasons shows that the reasons of keyed and unkeyed cases count, and those of named struct types.
func TestReasons(t *testing.T) {
	const source = `package p

type scenario struct {
	first int
	reason string
}

var (
	a = map[string]struct{ reason string }{"x": {"one two three"}, "y": {reason: "a b " + "c d " + "e"}}
	b = []scenario{{1, "a b c d"}}
	c = []struct{ other string }{{"not a reason"}}
)
`
	var got tally
	if err := got.addFile("p/a_test.go", []byte(source)); err != nil {
		t.Fatal(err)
	}
	if got.reasons != 3 || got.shortReasons != 2 {
		t.Errorf("three reasons, two of them short: got %d and %d", got.reasons, got.shortReasons)
	}
}

// TestDoubledTypes shows that only real types of several packages are doubled.
func TestDoubledTypes(t *testing.T) {
	got := tally{types: map[string]map[string]bool{}}
	for _, folder := range []string{"a", "b"} {
		source := "package p\n\ntype (\n\tRecord int\n\tOptions int\n\tAlias = int\n\tunexported int\n)\n"
		if err := got.addFile(folder+"/a.go", []byte(source)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"Record"}, got.doubled()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
