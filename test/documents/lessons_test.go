package documents_test

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/test/documents"
)

// lesson matches a row of the table "Learn, in this order".
var lesson = regexp.MustCompile(`(?m)^\| \d+ \| \[[^\]]*\]\(([a-z-]+\.md)\) \|`)

// maxWords is the number of words of prose that a page can teach.
const maxWords = 1200

// lessons returns the pages of the table in their order.
func lessons(t *testing.T) (pages []string) {
	t.Helper()
	_, table, _ := strings.Cut(read(t, "docs/README.md"), "\n## Learn, in this order\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, found := range lesson.FindAllStringSubmatch(table, -1) {
		pages = append(pages, found[1])
	}
	if len(pages) < 20 {
		t.Fatalf("found %d lessons", len(pages))
	}
	return pages
}

// TestLessons checks the pages to learn from: each begins with its purpose and with one complete file of the
// repository, is short, and ends with a link to the next page.
func TestLessons(t *testing.T) {
	pages := lessons(t)
	for i, page := range pages {
		text := read(t, "docs/"+page)
		_, body, _ := strings.Cut(text, "\n\n")
		if !strings.HasPrefix(body, "After this page, you ") {
			t.Errorf("%s: the first paragraph does not say what the reader can do after the page", page)
		}
		if words := len(strings.Fields(documents.Prose(text))); words > maxWords {
			t.Errorf("%s has %d words of prose, more than %d: move look-up material to another page",
				page, words, maxWords)
		}
		if i+1 < len(pages) && !regexp.MustCompile(`(?m)^Next: \[[^\]]+\]\(`+pages[i+1]+`\)`).MatchString(text) {
			t.Errorf("%s does not end with a link to the next page, %s", page, pages[i+1])
		}
		requireFirstFile(t, page, text)
	}
}

// requireFirstFile checks that the first block of a page is a whole file, and that a test runs it: a program needs a
// session beside it, which the page shows in full.
func requireFirstFile(t *testing.T, page, text string) {
	t.Helper()
	quotes := documents.Quotes(text)
	if len(quotes) == 0 || strings.Index(text, "\n```") < strings.Index(text, "<!-- "+quotes[0].File) {
		t.Errorf("%s does not begin with a file of the repository", page)
		return
	}
	first := quotes[0]
	if modules.Replace(read(t, first.File)) != first.Text {
		t.Errorf("%s: the first block is not all of %s", page, first.File)
	}
	folder := path.Dir(first.File)
	if path.Base(first.File) != "main.go" {
		return
	}
	if _, err := os.Stat(path.Join(root, folder, "session_test.go")); err != nil {
		t.Errorf("%s: no test runs %s: %v", page, first.File, err)
		return
	}
	var shown string
	for _, quote := range quotes {
		if quote.File == folder+"/session.txt" {
			shown += quote.Text
		}
	}
	if shown != read(t, folder+"/session.txt") {
		t.Errorf("%s does not show all of %s/session.txt", page, folder)
	}
}
