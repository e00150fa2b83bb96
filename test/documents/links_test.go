package documents_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/documents"
)

// TestLinks checks the links between the pages: files and headings exist.
func TestLinks(t *testing.T) {
	pages, err := filepath.Glob(root + "/docs/*.md")
	if err != nil || len(pages) < 30 {
		t.Fatalf("found %d pages: %v", len(pages), err)
	}
	for _, page := range pages {
		broken, err := documents.BrokenLinks(os.DirFS(root), "docs/"+filepath.Base(page))
		if err != nil {
			t.Error(err)
		}
		for _, one := range broken {
			t.Error(one)
		}
	}
}

func TestLinksThatAreBroken(t *testing.T) {
	pages := fstest.MapFS{
		"docs/a.md": {Data: []byte("[b](b.md) [c](c.md) [d](b.md#the-end) [e](b.md#a-thing-c)\n" +
			"[f](#none) `[g](g.md)` [h](https://example.org/h.md) [i](b.md#in-code) [j](../x/y.go)\n")},
		"docs/b.md": {Data: []byte("# A `thing`: [c](c.md)\n```\n# In code\n```\n")},
		"x/y.go":    {Data: []byte("package x\n")},
	}
	broken, err := documents.BrokenLinks(pages, "docs/a.md")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"docs/a.md: docs/c.md does not exist", "docs/a.md: docs/b.md does not have the heading #the-end",
		"docs/a.md: docs/a.md does not have the heading #none",
		"docs/a.md: docs/b.md does not have the heading #in-code",
	}
	if d := cmp.Diff(want, broken); d != "" {
		t.Errorf("broken links (-want, +got):\n%s", d)
	}
}
