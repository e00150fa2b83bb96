package documents_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/documents"
)

// modules replaces import paths of examples by the module that a page has the reader create.
var modules = strings.NewReplacer(
	"github.com/kopf-runtime/kopf-runtime/examples/getting-started", "example.org/websites",
	"../../getting-started/crd.yaml", "crd.yaml",
)

// TestQuotes checks the quotes of all pages.
func TestQuotes(t *testing.T) {
	pages, err := filepath.Glob(root + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, quote := range documents.Quotes(string(text)) {
			found++
			if err := quote.CheckQuote(os.DirFS(root), modules); err != nil {
				t.Errorf("%s: %v", filepath.Base(page), err)
			}
		}
	}
	if found < 10 {
		t.Errorf("found %d quotes: the comparison would pass without any", found)
	}
}

func TestQuotesThatAreWrong(t *testing.T) {
	files := fstest.MapFS{"p/f.go": {Data: []byte("package p\n\nfunc F() {}\nfunc G() {}\n")}}
	document := "<!-- p/f.go -->\n```go\nfunc F() {}\nfunc G() {}\n```\n" + // two lines of the file
		"<!-- p/f.go -->\n```go\nF() {}\n```\n" + // not a whole line
		"<!-- p/f.go -->\n```go\nfunc H() {}\n```\n<!-- p/g.go -->\n```\nx\n```\n```go\nx := 1\n```\n"
	var wrong []int
	for _, quote := range documents.Quotes(document) {
		if quote.CheckQuote(files, strings.NewReplacer()) != nil {
			wrong = append(wrong, quote.Line)
		}
	}
	if d := cmp.Diff([]int{8, 12, 16}, wrong); d != "" {
		t.Errorf("lines of quotes that are not in their files (-want, +got):\n%s", d)
	}
	rest := documents.Snippets(document)
	if d := cmp.Diff([]documents.Block{{Line: 19, Language: "go", Text: "x := 1\n"}}, rest); d != "" {
		t.Errorf("blocks that are not quotes (-want, +got):\n%s", d)
	}
}

// logLine matches a text in backquotes that looks like a sentence of the log.
var logLine = regexp.MustCompile("`([A-Z][a-z]+ [a-z]+ [^`]+)`")

// TestLogLines checks that the log lines in the manual are those of the framework.
func TestLogLines(t *testing.T) {
	all, err := os.ReadFile(messages)
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{
		"docs/troubleshooting.md", "docs/goroutines.md", "docs/not-called.md", "docs/own-storages.md",
		"docs/certificates.md", "docs/api-design.md",
	} {
		text, err := os.ReadFile(root + "/" + page)
		if err != nil {
			t.Fatal(err)
		}
		found := logLine.FindAllStringSubmatch(string(text), -1)
		if len(found) == 0 {
			t.Errorf("found no log line in %s", page)
		}
		for _, line := range found {
			if !strings.Contains(string(all), "| "+line[1]) {
				t.Errorf("%s: no log line begins with %q", page, line[1])
			}
		}
	}
}
