package main

import (
	"fmt"
	"html"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	scriptText = regexp.MustCompile(`(?s)(<script[^>]*>).*?</script>`)
	comment    = regexp.MustCompile(`(?s)<!--.*?-->`)
	tag        = regexp.MustCompile(`<([a-zA-Z][\w-]*)((?:\s+[^\s=<>/"']+` +
		`(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'>]+))?)*)\s*/?>`)
	attribute = regexp.MustCompile(`([\w:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))`)
	loadedCSS = regexp.MustCompile(`(?:url\(\s*|@import\s+)["']?([^"')\s;]+)`)
)

// document is a page of the built site.
type document struct {
	anchors map[string]bool
	// links are the targets of links, loads those of everything that the browser requests at once.
	links, loadedURLs []string
}

// check reports links and anchors of a site without a target, and everything that pages load from other hosts.
func check(site fs.FS) (problems []error) {
	documents, styles := map[string]document{}, map[string]string{}
	err := fs.WalkDir(site, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		switch path.Ext(name) {
		case ".html":
			text, err := fs.ReadFile(site, name)
			documents[name] = parse(string(text))
			return err
		case ".css", ".svg":
			text, err := fs.ReadFile(site, name)
			styles[name] = string(text)
			return err
		}
		return nil
	})
	if err != nil || len(documents) == 0 {
		return []error{fmt.Errorf("found %d pages: %w", len(documents), err)}
	}
	for name, page := range documents {
		for _, target := range page.loadedURLs {
			problems = append(problems, checkHost(name, target)...)
		}
		for _, target := range append(page.links, page.loadedURLs...) {
			problems = append(problems, checkTarget(site, documents, name, target)...)
		}
	}
	for name, text := range styles {
		for _, found := range loadedCSS.FindAllStringSubmatch(text, -1) {
			problems = append(problems, checkHost(name, found[1])...)
		}
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return problems
}

func parse(text string) document {
	page := document{anchors: map[string]bool{"": true}}
	text = scriptText.ReplaceAllString(comment.ReplaceAllString(text, ""), "$1")
	for _, found := range tag.FindAllStringSubmatch(text, -1) {
		element := strings.ToLower(found[1])
		for _, pair := range attribute.FindAllStringSubmatch(found[2], -1) {
			name, value := strings.ToLower(pair[1]), html.UnescapeString(pair[2]+pair[3]+pair[4])
			switch {
			case name == "id", name == "name" && element == "a":
				page.anchors[value] = true
			case name == "href" && (element == "a" || element == "area"):
				page.links = append(page.links, value)
			case name == "srcset":
				for one := range strings.SplitSeq(value, ",") {
					target, _, _ := strings.Cut(strings.TrimSpace(one), " ")
					page.loadedURLs = append(page.loadedURLs, target)
				}
			case name == "style":
				for _, loaded := range loadedCSS.FindAllStringSubmatch(value, -1) {
					page.loadedURLs = append(page.loadedURLs, loaded[1])
				}
			case slices.Contains([]string{"src", "href", "xlink:href", "data", "poster", "action"}, name):
				page.loadedURLs = append(page.loadedURLs, value)
			}
		}
	}
	return page
}

// checkHost reports a target on another host.
func checkHost(name, target string) []error {
	address, err := url.Parse(target)
	if err != nil {
		return []error{fmt.Errorf("%s: %q is not an address: %w", name, target, err)}
	}
	if address.Host != "" && address.Scheme != "data" {
		return []error{fmt.Errorf("%s: the page loads %s from another host", name, target)}
	}
	return nil
}

// checkTarget reports a target in the site that does not exist, or does not have the anchor.
func checkTarget(site fs.FS, documents map[string]document, name, target string) []error {
	address, err := url.Parse(target)
	if err != nil || address.Scheme != "" || address.Host != "" {
		return nil
	}
	where := name
	if address.Path != "" {
		where = path.Join(path.Dir(name), address.Path)
		if strings.HasPrefix(address.Path, "/") { // only of 404.html, which any folder can show
			where = strings.TrimPrefix(path.Clean(address.Path), "/")
		}
	}
	if where == "." || where == "" {
		where = "index.html"
	}
	if _, err := fs.Stat(site, where); err != nil {
		return []error{fmt.Errorf("%s: the link %s leads to a missing file", name, target)}
	}
	if page, ok := documents[where]; ok && !page.anchors[address.Fragment] {
		return []error{fmt.Errorf("%s: the link %s leads to a missing anchor", name, target)}
	}
	return nil
}
