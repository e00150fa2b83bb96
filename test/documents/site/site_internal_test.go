package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const root = "../../.."

// TestPages converts the pages of docs without the generator. It also checks the navigation and all links.
func TestPages(t *testing.T) {
	into := t.TempDir()
	pages, err := write(options{root: root, outputDir: into, ref: "main"})
	if err != nil || pages < 50 {
		t.Fatalf("wrote %d pages: %v", pages, err)
	}
	text, err := os.ReadFile(filepath.Join(into, "pages", "index.md"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "(" + repository + "/blob/main/CHANGELOG.md)"; !strings.Contains(string(text), want) {
		t.Errorf("a link out of docs must lead to the source repository: the first page does not have %s", want)
	}
}

// TestDiagrams checks that each picture was drawn from its source. It does not need d2.
func TestDiagrams(t *testing.T) {
	names, err := outdated(os.DirFS(root))
	if err != nil || len(names) > 0 {
		t.Errorf("make docs draws the pictures of these diagrams again: %v %v", names, err)
	}
	sources := fstest.MapFS{
		diagrams + "/new.d2":     {Data: []byte("a -> b")},
		diagrams + "/same.d2":    {Data: []byte("a -> b")},
		diagrams + "/same.svg":   {Data: []byte("<svg/>\n" + stamp([]byte("a -> b")))},
		diagrams + "/edited.d2":  {Data: []byte("a -> c")},
		diagrams + "/edited.svg": {Data: []byte("<svg/>\n" + stamp([]byte("a -> b")))},
	}
	names, err = outdated(sources)
	if d := cmp.Diff([]string{diagrams + "/edited.d2", diagrams + "/new.d2"}, names); d != "" || err != nil {
		t.Errorf("outdated diagrams (-want, +got):\n%s%v", d, err)
	}
}

func TestConvert(t *testing.T) {
	sources := fstest.MapFS{
		"docs/README.md":        {Data: []byte("# Index\n")},
		"docs/a.md":             {Data: []byte("# A\n\n## Part\n")},
		"SECURITY.md":           {Data: []byte("# Security\n\n## Ports\n")},
		"examples/one/main.go":  {Data: []byte("package main\n")},
		"console.png":           {Data: []byte("picture")},
		"docs/diagrams/one.svg": {Data: []byte("@media (prefers-color-scheme:dark){}")},
	}
	api := &apiLinks{addresses: map[string]string{
		"kopf.New": "https://pkg.go.dev/x#New", "Retries": "https://pkg.go.dev/x#Retries",
		"c.Patch": "https://pkg.go.dev/x#Change.Patch",
	}}
	cases := map[string]struct{ reason, text, want, err string }{
		"missing page":   {"a broken link ends the build", "[b](b.md)\n", "", "docs/a.md: link b.md"},
		"missing anchor": {"a broken anchor ends the build", "[a](a.md#gone)\n", "", "this heading"},
		"foreign page": {"other sites are not checked", "[x](https://example.org/y)\n",
			"[x](https://example.org/y)\n", ""},
		"page": {"the first page has another name", "[i](README.md), [a](a.md#part), [p](#part)\n# Part\n",
			"[i](index.md), [a](a.md#part), [p](#part)\n\n# Part {#part}\n", ""},
		"source file": {"files outside of docs are in the repository", "[s](../SECURITY.md#ports)\n",
			"[s](https://github.com/kopf-runtime/kopf-runtime/blob/v1/SECURITY.md#ports)\n", ""},
		"source folder": {"a folder has another address than a file", "[e](../examples/one)\n",
			"[e](https://github.com/kopf-runtime/kopf-runtime/tree/v1/examples/one)\n", ""},
		"link in code": {"code is not changed", "`[b](b.md)`\n\n```\n# no heading\n[b](b.md)\n```\n",
			"`[b](b.md)`\n\n```\n# no heading\n[b](b.md)\n```\n", ""},
		"headings": {"the generator makes other anchors than GitHub", "# A `b()`, c\n## Same\n\n## Same\n",
			"# A `b()`, c {#a-b-c}\n\n## Same {#same}\n\n## Same {#same-1}\n", ""},
		"list and table": {"the generator needs an empty line around them",
			"text\n* one\n* two\n\n| a |\n|--|\n| `b\\|c` |\nend\n",
			"text\n\n* one\n* two\n\n| a |\n|--|\n| `b|c` |\n\nend\n", ""},
		"block in a list": {"the generator needs four spaces",
			"1. one\n\n   ```go\n   x\n   ```\n\n   more\n\nend\n",
			"1. one\n\n    ```go\n    x\n    ```\n\n    more\n\nend\n", ""},
		"API in prose": {"the first mention has a link",
			"`kopf.New(x)`, `kopf.New`, `Retries`, `c.Patch`, [`kopf.New`](a.md)\n",
			"[`kopf.New(x)`](https://pkg.go.dev/x#New), `kopf.New`, `Retries`, " +
				"[`c.Patch`](https://pkg.go.dev/x#Change.Patch), [`kopf.New`](a.md)\n", ""},
		"API in a table": {"each mention has a link", "| `Retries` | `Retries(5)` |\n",
			"| [`Retries`](https://pkg.go.dev/x#Retries) | [`Retries(5)`](https://pkg.go.dev/x#Retries) |\n", ""},
		"quote": {"the whole file is one click away", "<!-- examples/one/main.go -->\n```go\npackage main\n```\n",
			"[examples/one/main.go](https://github.com/kopf-runtime/kopf-runtime/blob/v1/examples/one/main.go)" +
				"{ title=\"the whole file\" }\n{ .source }\n\n```go\npackage main\n```\n", ""},
		"picture": {"pictures are copied", "![p](../console.png)\n", "![p](pictures/console.png)\n", ""},
		"diagram": {"the colours follow the page", "![d](diagrams/one.svg)\n",
			"![d](diagrams/one-light.svg){ .diagram .light }\n![d](diagrams/one-dark.svg){ .diagram .dark }\n", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.err == "" && strings.Contains(tc.text, "#part") {
				sources["docs/a.md"].Data = []byte("# A\n\n## Part\n")
			}
			c := &converter{sources: sources, api: api, ref: "v1", files: map[string][]byte{}}
			got, err := c.convert("docs/a.md", tc.text)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s: want %q, got %v", tc.reason, tc.err, err)
				}
				return
			}
			if d := cmp.Diff(tc.want, got); d != "" || err != nil {
				t.Errorf("%s (-want, +got):\n%s%v", tc.reason, d, err)
			}
		})
	}
}

func TestNavigation(t *testing.T) {
	pages := []string{"docs/README.md", "docs/a.md"}
	for reason, tc := range map[string]struct{ configuration, err string }{
		"each page is there once":       {"nav: [index.md, {Learn: [{A: a.md}]}]", ""},
		"a page is not in the site":     {"nav: [index.md]", "a.md 0 times"},
		"a page is in two groups":       {"nav: [index.md, {Learn: [{A: a.md}]}, {Do: [a.md]}]", "a.md 2 times"},
		"a page that was removed stays": {"nav: [index.md, a.md, b.md]", "b.md, which is not in docs"},
	} {
		err := checkNavigation([]byte(tc.configuration), pages)
		if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
			t.Errorf("%s: want %q, got %v", reason, tc.err, err)
		}
	}
}

func TestCheck(t *testing.T) {
	page := func(text string) fstest.MapFS {
		return fstest.MapFS{
			"index.html":     {Data: []byte(`<link rel="stylesheet" href="assets/a.css"><h1 id="here">A</h1>` + text)},
			"b.html":         {Data: []byte(`<a href="index.html#here">A</a><a href=".">A</a>`)},
			"assets/a.css":   {Data: []byte(`a{background:url("data:image/svg+xml;utf8,x")}`)},
			"diagrams/d.svg": {Data: []byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`)},
		}
	}
	for reason, tc := range map[string]struct{ text, want string }{
		"all links have targets": {
			`<a href="#here">A</a><a href=b.html>B</a><img src='diagrams/d.svg'>`, "",
		},
		"links can lead to other sites": {`<a href="https://example.org/x">X</a>`, ""},
		"code is not loaded": {
			`<code>&lt;img src="https://example.org"&gt;</code><!-- <img src=x> -->`, "",
		},
		"a missing page":    {`<a href="c.html">C</a>`, "leads to a missing file"},
		"a missing anchor":  {`<a href="b.html#gone">B</a>`, "leads to a missing anchor"},
		"a missing picture": {`<img alt="a > b" src="e.svg">`, "leads to a missing file"},
		"a font of another host": {
			`<link rel="preconnect" href="https://fonts.example.org" crossorigin>`, "another host",
		},
		"a script of another host": {
			`<script src="//example.org/x.js">var a = "<b>"</script>`, "another host",
		},
		"a picture for sharp screens": {
			`<img src="diagrams/d.svg" srcset="https://example.org/x.png 2x">`, "another host",
		},
		"a background in an attribute": {
			`<p style="background: url(https://example.org/x.png)">`, "another host",
		},
		"an address that cannot be resolved": {`<img src="http://[x">`, "is not an address"},
	} {
		err := errors.Join(check(page(tc.text))...)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: want %q, got %v", reason, tc.want, err)
		}
	}
	site := page("")
	site["assets/a.css"].Data = []byte("@import 'https://example.org/fonts.css';")
	if err := errors.Join(check(site)...); err == nil || !strings.Contains(err.Error(), "another host") {
		t.Errorf("a style of another host is found: %v", err)
	}
}

func TestPublish(t *testing.T) {
	built, into := t.TempDir(), t.TempDir()
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(built, "index.html"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, ref := range []string{"v0.9.0", "main", "v0.10.0", "v1.0.0-rc.1"} {
		write("<h1>" + ref + "</h1>")
		if err := publish(built, into, ref); err != nil {
			t.Fatal(err)
		}
	}
	write("<h1>main again</h1>")
	if err := publish(built, into, "main"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"v0.9.0/index.html": "<h1>v0.9.0</h1>", "main/index.html": "<h1>main again</h1>",
		"versions.json": `[{"version": "v0.10.0", "title": "0.10.0", "aliases": ["latest"]},
			{"version": "v0.9.0", "title": "0.9.0", "aliases": []},
			{"version": "v1.0.0-rc.1", "title": "1.0.0-rc.1", "aliases": []},
			{"version": "main", "title": "main", "aliases": []}]`,
	} {
		text, err := os.ReadFile(filepath.Join(into, name))
		got, want := any(string(text)), any(want)
		if filepath.Ext(name) == ".json" {
			expected := []byte(want.(string))
			if err := errors.Join(json.Unmarshal(text, &got), json.Unmarshal(expected, &want)); err != nil {
				t.Fatal(err)
			}
		}
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s (-want, +got):\n%s%v", name, d, err)
		}
	}
	if problems := check(os.DirFS(into)); len(problems) > 0 {
		t.Errorf("the list of versions must lead to each manual: %v", errors.Join(problems...))
	}
	if text, err := os.ReadFile(filepath.Join(into, "index.html")); err != nil ||
		strings.Count(string(text), "<li>") != 4 || !strings.Contains(string(text), "0.10.0</a>, the latest") {
		t.Errorf("the list of versions, %v:\n%s", err, text)
	}
	for _, ref := range []string{"", "topic", "../v1.0.0", "v1"} {
		if err := publish(built, into, ref); err == nil {
			t.Errorf("%q is not a version, and must not be published", ref)
		}
	}
}

// TestSelector checks that the header has the menu of versions in published manuals only: others have no list.
func TestSelector(t *testing.T) {
	configuration, err := os.ReadFile(root + "/docs/site/mkdocs.yml")
	if err != nil {
		t.Fatal(err)
	}
	var before, after struct {
		Extra map[string]any `json:"extra"`
	}
	changed, err := withVersionMenu(configuration)
	if err := errors.Join(err, yaml.Unmarshal(configuration, &before), yaml.Unmarshal(changed, &after)); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"provider": "mike", "default": "latest"}
	if d := cmp.Diff(any(want), after.Extra["version"]); d != "" || before.Extra["version"] != nil ||
		len(after.Extra) != len(before.Extra)+1 {
		t.Errorf("the configuration of a published manual (-want, +got):\n%s", d)
	}
	if _, err := withVersionMenu([]byte("site_name: a\n")); err == nil {
		t.Error("a configuration without the section would have no menu")
	}
}
