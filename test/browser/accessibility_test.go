package browser_test

import (
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/test/browser"
)

func TestCheckAccessibility(t *testing.T) {
	const fine = `<main><h1>Databases</h1><label>Filter <input></label></main>`
	cases := map[string]struct {
		reason, body string
		view         browser.View
		want         []string
	}{
		"NoName": {
			reason: "a field without a name is a violation",
			body:   `<main><h1>Databases</h1><input id="filter"></main>`,
			want:   []string{"label (critical)", `["#filter"]`, "Fix any of the following"},
		},
		"ContrastInTheDark": {
			reason: "each view has colours of its own",
			body:   fine + `<main><p id="pale" style="color: #444">by now</p></main>`,
			view:   browser.View{PrefersDark: true},
			want:   []string{"color-contrast (serious)", `["#pale"]`},
		},
		"Fine": {
			reason: "there is nothing to say about it",
			body:   fine,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			url := serve(t, tc.body)
			got := play(t, func(t testing.TB) { browser.Open(t, url, tc.view).CheckAccessibility() })
			if len(got.skips) > 0 {
				t.Skip(got.skips)
			}
			if len(tc.want) == 0 && len(got.failures) > 0 {
				t.Errorf("%s, but the failures are %q", tc.reason, got.failures)
			}
			for _, part := range tc.want {
				if !strings.Contains(strings.Join(got.failures, "\n"), part) {
					t.Errorf("%s: no failure has %q: %q", tc.reason, part, got.failures)
				}
			}
		})
	}
}
