// Package site tests the site of the documentation in a browser: that pages load nothing from another host and report
// no error, that the search finds pages, that diagrams follow the colours of the page, and that the header has the menu
// of versions.
//
// It stands apart because it needs the result of `make docs`, and skips its tests without it. The links of the site are
// checked by test/documents/site, which builds it.
package site_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/browser"
)

const siteFolder = "../../../bin/site/html"

func TestMain(m *testing.M) { browser.Main(m) }

// securityPolicy has the browser report an error for each request to another host, which fails the test.
const securityPolicy = "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; " +
	"img-src 'self' data:; worker-src 'self' blob:"

// serve returns the address of the built site.
func serve(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat(siteFolder + "/index.html"); err != nil {
		t.Skip("skipped: make docs builds the site that this test opens")
	}
	files := http.FileServer(http.Dir(siteFolder))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", securityPolicy)
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// samplePages are pages with all elements: a diagram, long tables, code in several languages, lists with code.
var samplePages = []string{
	"index", "getting-started", "concepts", "handlers", "options", "settings", "mistakes", "storages", "tutorial",
	"porting",
}

func TestPages(t *testing.T) {
	address := serve(t)
	for _, name := range samplePages {
		for mode, view := range map[string]browser.View{"light": {}, "dark": {PrefersDark: true},
			"narrow": {Width: 480}} {
			t.Run(name+"/"+mode, func(t *testing.T) {
				p := browser.Open(t, address+"/"+name+".html", view)
				p.Wait("document.querySelector('h1') && document.readyState === 'complete'")
				var tooWide bool
				p.Read("document.documentElement.scrollWidth > document.documentElement.clientWidth", &tooWide)
				if tooWide {
					t.Error("the page must not scroll to the side")
				}
			})
		}
	}
}

func TestSearch(t *testing.T) {
	p := browser.Open(t, serve(t)+"/index.html", browser.View{})
	// The button does nothing until its script has run, so it is pressed again until the input has the focus.
	p.Wait("document.activeElement.shadowRoot?.activeElement?.matches('input') || " +
		"(document.querySelector('.md-search__button')?.click(), false)")
	p.Press("f", "i", "n", "a", "l", "i", "z", "e", "r")
	p.Wait("[...document.activeElement.shadowRoot.querySelectorAll('a')].some((a) => a.href.includes('deletion.html'))")
}

func TestDiagrams(t *testing.T) {
	address := serve(t)
	const shown = "[...document.querySelectorAll('img.diagram')]" +
		".filter((i) => i.offsetWidth > 0 && i.naturalWidth > 0).map((i) => i.src.match(/-(light|dark)[.]svg/)[1])"
	cases := map[string]struct {
		reason, want   string
		dark, switched bool
	}{
		"light":    {"the system prefers light", "light", false, false},
		"dark":     {"the system prefers dark", "dark", true, false},
		"switched": {"the reader has switched the page to dark", "dark", false, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := browser.Open(t, address+"/concepts.html", browser.View{PrefersDark: tc.dark})
			p.Wait("document.readyState === 'complete'")
			if tc.switched {
				var done bool
				p.Read("(document.getElementById('__palette_2').click(), true)", &done)
				p.Wait("document.body.dataset.mdColorScheme === 'slate'")
			}
			var modes []string
			p.Read(shown, &modes)
			if d := cmp.Diff([]string{tc.want, tc.want}, modes); d != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, d)
			}
		})
	}
}

// TestVersions checks that the theme makes the menu of versions of versions.json, which make docs writes with PUBLISH.
// The built site is served as the manual of a version, with the setting that it has there.
func TestVersions(t *testing.T) {
	site := serve(t)
	setting := strings.NewReplacer(`"version":null`, `"version":{"default":"latest","provider":"mike"}`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/versions.json" {
			_, _ = w.Write([]byte(`[{"version": "v1.0.0", "title": "1.0.0", "aliases": ["latest"]},
				{"version": "main", "title": "main", "aliases": []}]`))
			return
		}
		page, err := http.Get(site + strings.TrimPrefix(r.URL.Path, "/main")) //nolint:gosec // a server of this test
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer func() { _ = page.Body.Close() }()
		content, _ := io.ReadAll(page.Body)
		w.Header().Set("Content-Type", page.Header.Get("Content-Type"))
		w.WriteHeader(page.StatusCode)
		_, _ = setting.WriteString(w, string(content))
	}))
	defer server.Close()
	p := browser.Open(t, server.URL+"/main/upgrading.html", browser.View{})
	p.Wait("document.querySelector('.md-version__current')?.textContent.trim() === 'main'")
	var links []string
	p.Read("[...document.querySelectorAll('.md-version__link')].map((a) => a.getAttribute('href'))", &links)
	if d := cmp.Diff([]string{server.URL + "/v1.0.0/", server.URL + "/main/"}, links); d != "" {
		t.Errorf("the menu of versions (-want, +got):\n%s", d)
	}
}
