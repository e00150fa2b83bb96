package documents_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/documents"
)

func TestDeviations(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/deviations.md")
	if err != nil {
		t.Fatal(err)
	}
	all, err := documents.Deviations(string(text))
	if err != nil {
		t.Fatalf("docs/deviations.md: %v", err)
	}
	marks, err := documents.FindMarks(
		os.DirFS(root), "facade", "internal", "peering", "reconcilers", "storage", "test/e2e", "test/interop",
		"webhooks",
	)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 40 || len(marks.BySources) < 30 {
		t.Fatalf("only %d lines and %d marks: the comparison would pass for nothing", len(all), len(marks.BySources))
	}
	for _, one := range all {
		if one.InForce() && len(marks.ByTests[one.Mark]) == 0 {
			t.Errorf("docs/deviations.md: %s is in force, and no test shows it: name the mark in one", one.Mark)
		}
	}
	for mark, files := range marks.BySources {
		if !slices.ContainsFunc(all, func(one documents.Deviation) bool { return one.Mark == mark }) {
			t.Errorf("%s is named by %s, and docs/deviations.md does not have it", mark, files[0])
		}
	}
}

func TestDeviationsThatAreWrong(t *testing.T) {
	const head = "| Mark | Here | State |\n|--|--|--|\n"
	cases := map[string]struct{ reason, lines, err string }{
		"No mark":  {"a line without a mark is an error", "| (lifecycle) | x | in force |", "not a mark"},
		"Twice":    {"a mark in two lines is an error", "| D-a | x | in force |\n| D-a | y | in force |", "two lines"},
		"No state": {"an unknown state is an error", "| D-a | x | sometimes |", "not a state"},
		"Waiting":  {"a feature may come later", "| D-a | x | with admission |", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := documents.Deviations(head + tc.lines)
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("%s: want %q, got %v", tc.reason, tc.err, err)
			}
		})
	}
}

func TestMarks(t *testing.T) {
	sources := fstest.MapFS{
		"p/f.go":      {Data: []byte("package p // D-named\n")},
		"p/f_test.go": {Data: []byte("package p // D-tested, AD-a\n")},
		"p/testdata/vectors/x.json": {Data: []byte(`{"cases": [{"deviation": ["D-skipped"]},
			{"deviation": ["D-played"], "expected_here": false}]}`)},
	}
	marks, err := documents.FindMarks(sources, "p")
	if err != nil {
		t.Fatal(err)
	}
	want := documents.Marks{
		ByTests: map[string][]string{"D-tested": {"p/f_test.go"}, "D-played": {"p/testdata/vectors/x.json"}},
		BySources: map[string][]string{
			"D-named": {"p/f.go"}, "D-tested": {"p/f_test.go"},
			"D-skipped": {"p/testdata/vectors/x.json"}, "D-played": {"p/testdata/vectors/x.json"},
		},
	}
	if d := cmp.Diff(want, marks); d != "" {
		t.Errorf("tests and played cases show a mark, other sources name it (-want, +got):\n%s", d)
	}
}
