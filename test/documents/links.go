package documents

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

var (
	code    = regexp.MustCompile("(?ms)^```.*?^```|`[^`\n]*`")
	link    = regexp.MustCompile(`\]\(([^)\s#]*)(?:#([^)\s]*))?\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	fences  = regexp.MustCompile("(?ms)^```.*?^```")
	target  = regexp.MustCompile(`\]\([^)]*\)`)
	letter  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// BrokenLinks returns the links of a page to files and headings of the repository that do not exist.
func BrokenLinks(root fs.FS, page string) (broken []string, err error) {
	text, err := fs.ReadFile(root, page)
	if err != nil {
		return nil, err
	}
	for _, found := range link.FindAllStringSubmatch(code.ReplaceAllString(string(text), ""), -1) {
		if strings.Contains(found[1], "://") {
			continue
		}
		to := page
		if found[1] != "" {
			to = path.Join(path.Dir(page), found[1])
		}
		if _, err := fs.Stat(root, to); err != nil {
			broken = append(broken, fmt.Sprintf("%s: %s does not exist", page, to))
			continue
		}
		if found[2] == "" || !strings.HasSuffix(to, ".md") {
			continue
		}
		content, err := fs.ReadFile(root, to)
		if err != nil {
			return nil, err
		}
		if !hasHeading(string(content), found[2]) {
			broken = append(broken, fmt.Sprintf("%s: %s does not have the heading #%s", page, to, found[2]))
		}
	}
	return broken, nil
}

// hasHeading reports whether a page has a heading with this anchor, as GitHub makes anchors.
func hasHeading(page, anchor string) bool {
	for _, found := range heading.FindAllStringSubmatch(fences.ReplaceAllString(page, ""), -1) {
		words := letter.ReplaceAllString(target.ReplaceAllString(strings.ToLower(found[1]), ""), "")
		if strings.ReplaceAll(strings.TrimSpace(words), " ", "-") == anchor {
			return true
		}
	}
	return false
}
