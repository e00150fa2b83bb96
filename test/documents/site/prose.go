package main

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/test/documents"
)

// page is the conversion of one page.
type page struct {
	*converter
	name string
	// anchors are those of the headings that follow.
	anchors []string
	// linkedNames are the names of the API that the page has a link to.
	linkedNames map[string]bool
	// itemIndent is the width of the marker of the list item that the lines belong to; zero outside of lists.
	itemIndent int
	// previousLine is the line before.
	previousLine string
}

var (
	heading = regexp.MustCompile(`^#{1,6} +\S`)
	marker  = regexp.MustCompile(`^([*-]|\d+\.) +`)
	code    = regexp.MustCompile("`[^`\n]+`")
	// markdownLink is [text](target) with the exclamation mark of a picture. The text can have code.
	markdownLink = regexp.MustCompile("(!?)\\[((?:`[^`]*`|[^\\]`])*)\\]\\(([^()\\s]+)\\)")
)

func (p *page) number(text string) { p.anchors = documents.HeadingAnchors(text) }

// prose converts text between two blocks of code.
func (p *page) prose(text string) (string, error) {
	text, err := p.links(text)
	if err != nil {
		return "", err
	}
	var result strings.Builder
	for line := range strings.Lines(text) {
		result.WriteString(p.line(line))
	}
	return result.String(), nil
}

// line converts one line. Lists, tables and headings need an empty line before and after them, and blocks in a list
// item are indented by four spaces.
func (p *page) line(line string) string {
	before, after := "", line
	blank := strings.TrimSpace(line) == ""
	switch {
	case heading.MatchString(line):
		p.itemIndent, before = 0, p.separate(true)
		if len(p.anchors) > 0 {
			after = fmt.Sprintf("%s {#%s}\n", strings.TrimRight(line, " \n"), p.anchors[0])
			p.anchors = p.anchors[1:]
		}
	case marker.MatchString(line):
		inList := p.itemIndent > 0
		p.itemIndent = len(marker.FindString(line))
		before = p.separate(!inList)
	case strings.HasPrefix(line, "|"):
		p.itemIndent, before = 0, p.separate(!strings.HasPrefix(p.previousLine, "|"))
		after = code.ReplaceAllStringFunc(line, func(span string) string { return strings.ReplaceAll(span, `\|`, "|") })
	case strings.HasPrefix(line, " ") && !blank:
		after = p.indent(line)
	case !blank:
		if strings.TrimSpace(p.previousLine) == "" {
			p.itemIndent = 0
		}
		before = p.separate(strings.HasPrefix(p.previousLine, "|"))
	}
	p.previousLine = line
	return before + after
}

func (p *page) separate(needed bool) string {
	if needed && strings.TrimSpace(p.previousLine) != "" {
		return "\n"
	}
	return ""
}

// indent moves the lines of a block in a list item to the right.
func (p *page) indent(block string) string {
	if p.itemIndent == 0 || p.itemIndent >= 4 || !strings.HasPrefix(block, " ") {
		p.previousLine = ""
		return block
	}
	more := strings.Repeat(" ", 4-p.itemIndent)
	var result strings.Builder
	for line := range strings.Lines(block) {
		if strings.TrimSpace(line) != "" {
			result.WriteString(more)
		}
		result.WriteString(line)
	}
	return result.String()
}

// links converts the targets of links and pictures, and adds links to the API.
func (p *page) links(text string) (string, error) {
	var result strings.Builder
	for text != "" {
		at := markdownLink.FindStringSubmatchIndex(text)
		if span := code.FindStringIndex(text); at == nil || span != nil && span[0] < at[0] {
			if span == nil {
				result.WriteString(text)
				break
			}
			result.WriteString(text[:span[0]])
			result.WriteString(p.apiLink(result.String(), text[span[0]:span[1]]))
			text = text[span[1]:]
			continue
		}
		result.WriteString(text[:at[0]])
		picture, label, target := at[2] < at[3], text[at[4]:at[5]], text[at[6]:at[7]]
		replaced, err := p.link(picture, label, target)
		if err != nil {
			return "", err
		}
		result.WriteString(replaced)
		text = text[at[1]:]
	}
	return result.String(), nil
}

// link converts one link or picture.
func (p *page) link(picture bool, label, target string) (string, error) {
	if err := documents.CheckLink(p.sources, p.name, target); err != nil {
		return "", err
	}
	file, anchor, anchored := strings.Cut(target, "#")
	where := path.Join(path.Dir(p.name), file)
	switch {
	case picture:
		return p.picture(label, where)
	case strings.Contains(target, "://"), strings.HasPrefix(target, "mailto:"), file == "":
	case path.Dir(where) == "docs" && path.Ext(where) == ".md":
		target = pageName(path.Base(where))
	default:
		target = p.source(where)
	}
	if anchored && file != "" && !strings.Contains(target, "#") {
		target += "#" + anchor
	}
	return fmt.Sprintf("[%s](%s)", label, target), nil
}

// source returns the address of a file or folder in the source repository.
func (c *converter) source(file string) string {
	kind := "blob"
	if info, err := fs.Stat(c.sources, file); err == nil && info.IsDir() {
		kind = "tree"
	}
	return fmt.Sprintf("%s/%s/%s/%s", repository, kind, c.ref, file)
}
