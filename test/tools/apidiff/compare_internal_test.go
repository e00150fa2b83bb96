package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCompareVersions(t *testing.T) {
	const list = "package layers\n\nvar Promised = []string{\"p\", \"nested\"}\n"
	former := map[string]string{
		"go.mod": "module m\n\ngo 1.25\n", "p/p.go": "package p\n\nfunc A() {}\n\nfunc B(int) {}\n",
		"q/q.go":        "package q\n\nfunc Gone() {}\n",
		"nested/go.mod": "module m/nested\n\ngo 1.25\n", "nested/n.go": "package nested\n\ntype N int\n",
	}
	cases := map[string]struct {
		reason       string
		changed      map[string]string
		want         string
		incompatible int
	}{
		"Same": {reason: "an unchanged version has no changes"},
		"Changed": {
			reason:  "each change is reported with its package, and incompatible ones are counted",
			changed: map[string]string{"p/p.go": "package p\n\nfunc B(string) {}\n\nfunc C() {}\n"},
			want: "p: A: removed (incompatible)\np: B: changed from func(int) to func(string) (incompatible)\n" +
				"p: C: added\n",
			incompatible: 2,
		},
		"Nested": {
			reason:       "packages of nested modules are compared",
			changed:      map[string]string{"nested/n.go": "package nested\n"},
			want:         "nested: N: removed (incompatible)\n",
			incompatible: 1,
		},
		"Removed": {
			reason:       "a removed package is incompatible",
			changed:      map[string]string{"p/p.go": ""},
			want:         "p: removed (incompatible)\n",
			incompatible: 1,
		},
		"Unpromised": {
			reason:  "packages that are not promised may change",
			changed: map[string]string{"q/q.go": "package q\n"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before, after := t.TempDir(), t.TempDir()
			write(t, before, former) // The list of packages is newer than this version.
			write(t, after, former)
			write(t, after, map[string]string{"test/layers/promises.go": list})
			write(t, after, tc.changed)
			var out strings.Builder
			incompatible, err := compareVersions(&out, before, after)
			if err != nil {
				t.Fatal(err)
			}
			if out.String() != tc.want || incompatible != tc.incompatible {
				t.Errorf("%s: got %d incompatible changes, want %d, and the report:\n%swant:\n%s",
					tc.reason, incompatible, tc.incompatible, out.String(), tc.want)
			}
		})
	}
}

func TestPromisedFoldersOfThisRepository(t *testing.T) {
	got, err := promisedFolders("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"facade", "facade/rules", "storage/progress"} {
		if !slices.Contains(got, want) {
			t.Errorf("promisedFolders() does not contain %s, got %v", want, got)
		}
	}
}

// write writes files below a folder; one without text is removed.
func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		target := filepath.Join(root, name)
		if text == "" {
			if err := os.Remove(target); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(target, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
