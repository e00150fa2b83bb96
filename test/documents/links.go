package documents

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"unicode"
)

var (
	anyFence = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	codeSpan = regexp.MustCompile("`[^`\n]*`")
	// link is `](target)`: links and pictures, also around each other.
	link         = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading      = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	linkWithText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// WithoutBlocks returns a document without its blocks of code.
func WithoutBlocks(document string) string { return anyFence.ReplaceAllString(document, "") }

// Prose is a document without blocks of code and without the targets of links.
func Prose(document string) string {
	return linkWithText.ReplaceAllString(linkWithText.ReplaceAllString(anyFence.ReplaceAllString(document, ""), "$1"),
		"$1")
}

// Links are the targets of a document's links, except those in code.
func Links(document string) (targets []string) {
	text := codeSpan.ReplaceAllString(anyFence.ReplaceAllString(document, ""), "")
	for _, found := range link.FindAllStringSubmatch(text, -1) {
		targets = append(targets, found[1])
	}
	return targets
}

// Anchors are the names by which links reach the headings of a document, as GitHub makes them.
func Anchors(document string) map[string]bool {
	anchors := map[string]bool{}
	for _, anchor := range HeadingAnchors(document) {
		anchors[anchor] = true
	}
	return anchors
}

// HeadingAnchors are the anchors of a document in the order of its headings.
func HeadingAnchors(document string) (anchors []string) {
	used := map[string]bool{}
	for _, found := range heading.FindAllStringSubmatch(anyFence.ReplaceAllString(document, ""), -1) {
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, linkWithText.ReplaceAllString(found[1], "$1"))
		unique := name
		for n := 1; used[unique]; n++ {
			unique = fmt.Sprintf("%s-%d", name, n)
		}
		used[unique] = true
		anchors = append(anchors, unique)
	}
	return anchors
}

// CheckLink reports a link of a document to a file or an anchor that is missing. Links to other sites are not checked.
func CheckLink(sources fs.FS, document, target string) error {
	if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
		return nil
	}
	file, anchor, _ := strings.Cut(target, "#")
	where := document
	if file != "" {
		where = path.Join(path.Dir(document), file)
	}
	info, err := fs.Stat(sources, where)
	if err != nil {
		return fmt.Errorf("%s: link %s: %w", document, target, err)
	}
	if anchor == "" {
		return nil
	}
	if info.IsDir() || path.Ext(where) != ".md" {
		return fmt.Errorf("%s: link %s: only Markdown files have anchors", document, target)
	}
	text, err := fs.ReadFile(sources, where)
	if err != nil {
		return err
	}
	if !Anchors(string(text))[anchor] {
		return fmt.Errorf("%s: link %s: the file does not have this heading", document, target)
	}
	return nil
}
