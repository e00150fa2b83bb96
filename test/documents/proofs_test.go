package documents_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/documents"
)

// TestGuarantees checks that each promise of docs/guarantees.md names a test, and that the tests exist that it and the
// threat model of SECURITY.md name.
func TestGuarantees(t *testing.T) {
	for page, least := range map[string]int{"docs/guarantees.md": 35, "SECURITY.md": 50} {
		all, without := documents.Proofs(read(t, page))
		if len(all) < least {
			t.Errorf("%s: found %d tests, and expected at least %d", page, len(all), least)
		}
		if page != "SECURITY.md" && len(without) > 0 { // which says of some effects that they have no limit
			t.Errorf("%s: no test shows the promises %q", page, without)
		}
		for _, proof := range all {
			if err := proof.Check(os.DirFS(root)); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
}

// TestContinuity checks that the tests exist that docs/continuity.md names.
func TestContinuity(t *testing.T) {
	const folder = "examples/getting-started"
	names := regexp.MustCompile("`(Test[A-Z][a-z]\\w*)`").FindAllStringSubmatch(read(t, "docs/continuity.md"), -1)
	if len(names) < 4 {
		t.Errorf("found %d tests in docs/continuity.md", len(names))
	}
	for _, name := range names {
		if err := (documents.Proof{Folder: folder, Name: name[1]}).Check(os.DirFS(root)); err != nil {
			t.Errorf("docs/continuity.md: %v", err)
		}
	}
	cases := read(t, folder+"/continuity_test.go")
	for _, name := range []string{"etcd restored", "created again from a backup"} {
		if !strings.Contains(cases, `"`+name+`": {`) || !strings.Contains(read(t, "docs/continuity.md"), "`"+name+"`") {
			t.Errorf("docs/continuity.md and its test do not both have the case %q", name)
		}
	}
}

func TestProofs(t *testing.T) {
	sources := fstest.MapFS{
		"a/b/c_test.go": {Data: []byte("package b\n\nfunc TestOne(t *testing.T) {}\n")},
		"a/b/d.go":      {Data: []byte("package b\n\nfunc TestTwo() {}\n")},
	}
	document := "| Promise | Test |\n|--|--|\n| one | `a/b` `TestOne`, `c_test.go` |\n| `TestOne` | |\n\n" +
		"| Name | Content |\n|--|--|\n| `a/b` | `TestGone` |\n\n" +
		"| Promise | Test |\n|--|--|\n| two | `a/b` `TestTwo`; `a` `TestOne`; `TestOne` |\n"
	all, without := documents.Proofs(document)
	want := []documents.Proof{
		{Folder: "a/b", Name: "TestOne"}, {Folder: "a/b", Name: "c_test.go"},
		{Folder: "a/b", Name: "TestTwo"}, {Folder: "a", Name: "TestOne"},
		{Folder: "a", Name: "TestOne"},
	}
	if d := cmp.Diff(want, all); d != "" {
		t.Errorf("tests of the tables with that column (-want, +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"`TestOne`"}, without); d != "" {
		t.Errorf("rows without a test (-want, +got):\n%s", d)
	}
	for i, exists := range []bool{true, true, false, false, false} {
		if err := all[i].Check(sources); (err == nil) != exists {
			t.Errorf("%+v: want it to exist: %t, got %v", all[i], exists, err)
		}
	}
}
