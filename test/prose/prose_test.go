package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each file in testdata/rules belongs to one rule: it finds every paragraph below "# Bad" and none below "# Good".
func TestRules(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	rules, err := filepath.Glob("styles/Plain/*.yml")
	if err != nil || len(rules) == 0 {
		t.Fatalf("the rules are in styles/Plain: got %v, %v", rules, err)
	}
	var texts []text
	want := map[string][]int{}
	for _, rule := range rules {
		name := strings.TrimSuffix(filepath.Base(rule), ".yml")
		content, err := os.ReadFile(filepath.Join("testdata", "rules", name+".md"))
		if err != nil {
			t.Fatalf("each rule has a file of examples: got %v", err)
		}
		texts = append(texts, text{name, string(content)})
		bad := false
		for i, line := range strings.Split(string(content), "\n") {
			switch {
			case strings.HasPrefix(line, "# "):
				bad = line == "# Bad"
			case bad && line != "":
				want["Plain."+name] = append(want["Plain."+name], i+1)
			}
		}
	}
	alerts, err := runVale(texts)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]int{}
	for _, a := range alerts {
		if a.Check == "Plain."+a.File {
			got[a.Check] = append(got[a.Check], a.Line)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("each rule finds the bad paragraphs alone: lines, -want, +got:\n%s", diff)
	}
}

func TestProseOfGoFiles(t *testing.T) {
	got, err := proseOf("a.go", []byte(`// Package a has a comment.
package a

//go:generate something that is no prose
import "fmt"

/* One that
spans lines. */
var reasons = map[string]error{
	"a missing object is an error": fmt.Errorf("reading %s: not found", "x"), // at the end
	`+"`raw strings are code for sure`"+`: nil,
}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := `Package a has a comment.





 One that
spans lines. 

at the end a missing object is an error reading %s: not found


`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("comments and texts stand at their lines, and code is left out: -want, +got:\n%s", diff)
	}
	if _, err := proseOf("a.go", []byte("packag")); err == nil {
		t.Error("a file that is not Go code is an error: got nil")
	}
}

func TestChangedLines(t *testing.T) {
	got := changedLines([]byte(`diff --git a/a.md b/a.md
--- a/a.md
+++ b/a.md
@@ -1 +1,2 @@
-old
+new
+more
@@ -7,2 +9,0 @@
-gone
-gone, too
@@ -12 +12 @@ heading
-x
+y
diff --git a/b.go b/b.go
new file mode 100644
--- /dev/null
+++ b/b.go
@@ -0,0 +1 @@
+package b
`))
	want := map[string]lineSet{"a.md": {1: true, 2: true, 12: true}, "b.go": {1: true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changed lines by file: -want, +got:\n%s", diff)
	}
}
