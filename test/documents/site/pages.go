package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// index is the page of docs that becomes the first page of the site.
const index = "README.md"

// write writes the configuration, the style, the pages and the pictures for the generator, and returns the number of
// pages.
func write(o options) (int, error) {
	sources := os.DirFS(o.root)
	names, err := fs.Glob(sources, "docs/*.md")
	if err != nil {
		return 0, err
	}
	configuration, err := fs.ReadFile(sources, "docs/site/mkdocs.yml")
	if err != nil {
		return 0, err
	}
	if err := checkNavigation(configuration, names); err != nil {
		return 0, err
	}
	if o.publishDir != "" {
		if configuration, err = withVersionMenu(configuration); err != nil {
			return 0, err
		}
	}
	links, err := newAPILinks(sources, o.ref)
	if err != nil {
		return 0, err
	}
	files := map[string][]byte{"mkdocs.yml": configuration}
	if files["pages/style.css"], err = fs.ReadFile(sources, "docs/site/style.css"); err != nil {
		return 0, err
	}
	converter := &converter{sources: sources, api: links, ref: o.ref, files: files}
	for _, name := range names {
		text, err := fs.ReadFile(sources, name)
		if err != nil {
			return 0, err
		}
		page, err := converter.convert(name, string(text))
		if err != nil {
			return 0, err
		}
		files["pages/"+pageName(path.Base(name))] = []byte(page)
	}
	for name, content := range files {
		file := filepath.Join(o.outputDir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return 0, fmt.Errorf("making a folder of the site: %w", err)
		}
		if err := os.WriteFile(file, content, 0o644); err != nil { //nolint:gosec // others may serve it
			return 0, fmt.Errorf("writing a source of the site: %w", err)
		}
	}
	return len(names), nil
}

// pageName is the name of a page of docs on the site.
func pageName(name string) string {
	if name == index {
		return "index.md"
	}
	return name
}

// checkNavigation reports pages that the navigation does not have exactly once, and entries without a page.
func checkNavigation(configuration []byte, pages []string) error {
	var parsed struct {
		Nav any `json:"nav"`
	}
	if err := yaml.Unmarshal(configuration, &parsed); err != nil {
		return fmt.Errorf("docs/site/mkdocs.yml: %w", err)
	}
	entries := entriesOf(parsed.Nav)
	var wanted []string
	for _, page := range pages {
		wanted = append(wanted, pageName(path.Base(page)))
	}
	for _, name := range slices.Concat(wanted, entries) {
		found := 0
		for _, entry := range entries {
			if entry == name {
				found++
			}
		}
		switch {
		case found != 1:
			return fmt.Errorf("docs/site/mkdocs.yml: the navigation has the page %s %d times, not once", name, found)
		case !slices.Contains(wanted, name):
			return fmt.Errorf("docs/site/mkdocs.yml: the navigation has %s, which is not in docs", name)
		}
	}
	return nil
}

func entriesOf(nav any) (entries []string) {
	switch nav := nav.(type) {
	case string:
		return []string{nav}
	case []any:
		for _, one := range nav {
			entries = append(entries, entriesOf(one)...)
		}
	case map[string]any:
		for _, one := range nav {
			entries = append(entries, entriesOf(one)...)
		}
	}
	return entries
}

// converter makes pages for the generator of pages for GitHub.
type converter struct {
	sources fs.FS
	api     *apiLinks
	ref     string
	// files are those of the site; pictures that pages show are added.
	files map[string][]byte
}

// fencedBlock matches a block of code, with the comment above it that names the file that it repeats.
var fencedBlock = regexp.MustCompile("(?ms)^(?:<!-- ([\\w./-]+) -->\n)?( *)```[^\n]*\n.*?^ *```$")

// convert returns the page with links, headings and blocks as the generator needs them.
func (c *converter) convert(name, text string) (string, error) {
	page := &page{converter: c, name: name, linkedNames: map[string]bool{}}
	page.number(text)
	var result strings.Builder
	for text != "" {
		at := fencedBlock.FindStringSubmatchIndex(text)
		if at == nil {
			at = []int{len(text), len(text), -1, -1}
		}
		prose, err := page.prose(text[:at[0]])
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		result.WriteString(prose)
		block := text[at[0]:at[1]]
		if at[2] >= 0 {
			file := text[at[2]:at[3]]
			_, block, _ = strings.Cut(block, "\n")
			fmt.Fprintf(&result, "[%s](%s){ title=\"the whole file\" }\n{ .source }\n\n", file, c.source(file))
		}
		result.WriteString(page.indent(block))
		text = text[at[1]:]
	}
	return result.String(), nil
}
