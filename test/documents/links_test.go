package documents_test

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/documents"
)

// markdown returns the names of all Markdown files of the repository, except those of test data and tools.
func markdown(t *testing.T, sources fs.FS) (names []string) {
	t.Helper()
	err := fs.WalkDir(sources, ".", func(name string, entry fs.DirEntry, err error) error {
		base := path.Base(name)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (base == "testdata" || base == "bin" || base == "node_modules" ||
			strings.HasPrefix(base, ".") && base != "."):
			return fs.SkipDir
		case path.Ext(name) == ".md":
			names = append(names, name)
		}
		return nil
	})
	if err != nil || len(names) < 60 {
		t.Fatalf("found %d Markdown files: %v", len(names), err)
	}
	return names
}

func TestLinks(t *testing.T) {
	sources, checked := os.DirFS(root), 0
	for _, name := range markdown(t, sources) {
		text, err := fs.ReadFile(sources, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range documents.Links(string(text)) {
			checked++
			if err := documents.CheckLink(sources, name, target); err != nil {
				t.Error(err)
			}
		}
	}
	if checked < 400 {
		t.Errorf("found %d links: the test would pass for nothing", checked)
	}
}

func TestLinksThatAreWrong(t *testing.T) {
	sources := fstest.MapFS{
		"docs/a.md": {Data: []byte("# A `b()`, c\n\n## Same\n\n## Same\n\n```\n# not a heading\n```\n")},
		"main.go":   {Data: []byte("package main\n")},
	}
	cases := map[string]struct{ reason, target, err string }{
		"missing file":      {"the page was renamed", "b.md", "file does not exist"},
		"missing heading":   {"the section was moved", "a.md#other", "this heading"},
		"heading in code":   {"a comment of a program is not a heading", "#not-a-heading", "this heading"},
		"anchor in Go":      {"GitHub does not show headings there", "../main.go#a", "only Markdown"},
		"heading with code": {"punctuation is dropped", "#a-b-c", ""},
		"repeated heading":  {"the second one gets a number", "a.md#same-1", ""},
		"another site":      {"tests do not use the network", "https://example.org/x#y", ""},
		"file of code":      {"a link can lead to a source", "../main.go", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := documents.CheckLink(sources, "docs/a.md", tc.target)
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("%s: want %q, got %v", tc.reason, tc.err, err)
			}
		})
	}
}

func TestLinksAndProse(t *testing.T) {
	text := "See [![a](b.svg)](c.md), `[d](e)` and [f g](h.md#i).\n\n```go\nx[j](k)\n```\n"
	if d := cmp.Diff([]string{"b.svg", "c.md", "h.md#i"}, documents.Links(text)); d != "" {
		t.Errorf("links, except those in code (-want, +got):\n%s", d)
	}
	want := "See !a, `d` and f g."
	if got := strings.TrimSpace(documents.Prose(text)); got != want {
		t.Errorf("prose without code and targets: want %q, got %q", want, got)
	}
}
