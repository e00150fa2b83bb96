package documents_test

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/test/documents"
)

// sourceFiles returns the files of the repository that can refer to pages, with their texts.
func sourceFiles(t *testing.T, sources fs.FS) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(sources, ".", func(name string, entry fs.DirEntry, err error) error {
		base := path.Base(name)
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if name == "bin" || base == "testdata" || strings.HasPrefix(base, ".") && name != "." {
				return fs.SkipDir
			}
			return nil
		case strings.HasSuffix(name, "_test.go") && strings.HasPrefix(name, "test/documents/"), // invented pages
			!slices.Contains([]string{".go", ".yaml", ".yml", ".json", ".txt", ".d2", ""}, path.Ext(name)):
			return nil
		}
		text, err := fs.ReadFile(sources, name)
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestReferences checks that every page and anchor of docs exists that a message, a comment, an alert or a manifest
// refers to.
func TestReferences(t *testing.T) {
	sources, addresses, references := os.DirFS(root), 0, 0
	for name, text := range sourceFiles(t, sources) {
		found := documents.References(name, text)
		references += len(found)
		addresses += strings.Count(text, logging.ManualBase)
		if name == "internal/logging/manual.go" {
			addresses += len(found)
		}
		for _, problem := range documents.CheckReferences(sources, name, text) {
			t.Error(problem)
		}
	}
	if references < 80 || addresses < 12 {
		t.Errorf("found %d references and %d addresses: the test would pass for nothing", references, addresses)
	}
}

func TestReferencesThatAreWrong(t *testing.T) {
	sources := fstest.MapFS{"docs/a.md": {Data: []byte("# A\n\n## Here\n")}}
	cases := map[string]struct {
		reason, name, text string
		targets            []string
		problems           int
	}{
		"missing page": {"the page was renamed", "a.go", "// see docs/b.md.", []string{"docs/b.md"}, 1},
		"missing heading": {
			"a section was renamed", "a.yaml", logging.ManualBase + "a.md#there", []string{"docs/a.md#there"}, 1,
		},
		"address in Go": {
			"the base stands in one place", "a.go", `"` + logging.ManualBase + `a.md#here"`,
			[]string{"docs/a.md#here"}, 1,
		},
		"a constant": {"an address without a heading breaks a message", "internal/logging/manual.go",
			`A = Base + "a.md#gone"`, []string{"docs/a.md#gone"}, 1},
		"another site": {"only our pages are here", "a.go", "https://example.org/docs/c.md", nil, 0},
		"a page":       {"comments refer to pages", "a.go", "see ../docs/a.md", []string{"docs/a.md"}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.targets, documents.References(tc.name, tc.text)); d != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, d)
			}
			if got := documents.CheckReferences(sources, tc.name, tc.text); len(got) != tc.problems {
				t.Errorf("%s: want %d problems, got %v", tc.reason, tc.problems, got)
			}
		})
	}
}
