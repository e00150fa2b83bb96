package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEquivalents(t *testing.T) {
	const list = "# about the list\n\np.go: f: `a` to `!a`\n    It is never asked.\n    By nobody.\n\n"
	known := func() []*mutant {
		return []*mutant{
			{id: 1, file: "p.go", line: 4, function: "f", from: "a", to: "!a"},
			{id: 2, file: "p.go", line: 9, function: "f", from: "a", to: "!a"},
			{id: 3, file: "p.go", function: "g", from: "a", to: "!a"},
			{id: 4, file: "q.go", function: "f", from: "a", to: "!a"},
		}
	}
	cases := map[string]struct {
		reason, list string
		wantLeft     []int
		stale        []string
	}{
		"no list": {reason: "without a list every change is tried", wantLeft: []int{1, 2, 3, 4}},
		"an entry": {
			reason: "stands for all such changes in its function, on whatever line",
			list:   list, wantLeft: []int{3, 4},
		},
		"a stale one": {
			reason:   "what matches nothing hides nothing, and would hide something one day",
			list:     list + "p.go: h: `a` to `!a`\n    Gone.\n",
			wantLeft: []int{3, 4}, stale: []string{"p.go: h: `a` to `!a`"},
		},
		"another package": {
			reason: "its files were not looked at, so nothing is known of its changes",
			list:   list + "other.go: h: `a` to `!a`\n    Not here.\n", wantLeft: []int{3, 4},
		},
		"a file that is gone": {
			reason:   "an entry of a removed file is stale",
			list:     list + "gone.go: h: `a` to `!a`\n    Gone.\n",
			wantLeft: []int{3, 4}, stale: []string{"gone.go: h: `a` to `!a`"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := writeModule(t, map[string]string{"p.go": "package p", "other.go": "package p", "list.txt": c.list})
			listed, err := readEquivalents(filepath.Join(m.root, "list.txt"))
			if err != nil {
				t.Fatalf("reading the list: %v", err)
			}
			var left []int
			for _, one := range listed.without(known()) {
				left = append(left, one.id)
			}
			if diff := cmp.Diff(c.wantLeft, left); diff != "" {
				t.Errorf("%s: what is left to try (-want, +got):\n%s", c.reason, diff)
			}
			if diff := cmp.Diff(c.stale, listed.stale(m.root)); diff != "" {
				t.Errorf("%s: what is out of date (-want, +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestEquivalentsNeedAReason(t *testing.T) {
	cases := map[string]struct{ reason, list, want string }{
		"none":         {reason: "an entry must have a reason", list: "p.go: f: `a` to `b`\n", want: "no reason"},
		"above":        {reason: "a reason must follow an entry", list: "    Because.\n", want: "without a change"},
		"not a change": {reason: "a file alone hides everything", list: "p.go\n    Because.\n", want: "FILE: FUNCTION"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "list.txt")
			if err := os.WriteFile(path, []byte(c.list), 0o600); err != nil {
				t.Fatalf("writing the list: %v", err)
			}
			if _, err := readEquivalents(path); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got the error %v, want one with %q", c.reason, err, c.want)
			}
		})
	}
}

func TestChangedLines(t *testing.T) {
	const diff = `diff --git a/one/a.go b/one/a.go
--- a/one/a.go
+++ b/one/a.go
@@ -3 +3,2 @@ func f() {
-	old
+	new
+	newer
@@ -9,0 +11 @@
+	last
diff --git a/two/b.go b/two/b.go
--- a/two/b.go
+++ b/two/b.go
@@ -4,2 +3,0 @@
-	gone
-	gone
`
	changed := parseDiff([]byte(diff))
	want := lines{"one/a.go": {3: true, 4: true, 11: true}, "two/b.go": {}}
	if diff := cmp.Diff(want, changed); diff != "" {
		t.Errorf("lines that are new, and files that lost some (-want, +got):\n%s", diff)
	}
	for dir, want := range map[string]bool{"one": true, "two": true, ".": false, "on": false} {
		if got := changed.touch(dir); got != want {
			t.Errorf("whether %s is touched: got %v, want %v", dir, got, want)
		}
	}
	left := changed.only([]*mutant{
		{id: 1, file: "one/a.go", line: 4}, {id: 2, file: "one/a.go", line: 5}, {id: 3, file: "c.go", line: 3},
	})
	if len(left) != 1 || left[0].id != 1 {
		t.Errorf("got %v, want the change on a changed line alone", left)
	}
}

func TestReport(t *testing.T) {
	of := func(outcomes ...outcome) []*mutant {
		var all []*mutant
		for _, one := range outcomes {
			mutant := &mutant{file: "p.go", function: "f", from: "a", to: "b", tests: []string{"p"}, outcome: one}
			all = append(all, mutant)
		}
		return all
	}
	var out strings.Builder
	var r report
	r.add(&out, "two", of(killed, killed, killed, survived, unreached))
	r.add(&out, "one", of(killed, untried))
	r.table(&out)
	want := "p.go:0:0: f: `a` to `b` survived the tests of p\n" +
		"p.go:0:0: f: `a` to `b` is reached by no test\n" +
		"package  changes  killed  survived  not reached  not tried\n" +
		"one      2        100 %   0         0 %          1\n" +
		"two      5        75 %    1         20 %         0\n" +
		"all      7        80 %    1         14 %         1\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
	for _, c := range []struct {
		killed, unreached int
		want              bool
	}{{75, 20, false}, {76, 20, true}, {75, 19, true}} {
		if got := r.weak(c.killed, c.unreached); got != c.want {
			t.Errorf("weaker than %d %% killed or %d %% not reached: got %v", c.killed, c.unreached, got)
		}
	}
	if r.survivors() != 2 {
		t.Errorf("got %d survivors, want those that are reached and those that are not", r.survivors())
	}
}
