package kopf_test

import (
	"strings"
	"testing"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// A selector of namespaces that means nothing, or cannot work, is an error of the set-up.
func TestWrongNamespaceLabels(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		settings kopf.Settings
		want     string
	}{
		"Syntax": {"no selector", kopf.Settings{NamespaceLabels: "team=shop,,"}, "NamespaceLabels: "},
		"Numbers": {"a webhook configuration cannot compare numbers", kopf.Settings{NamespaceLabels: "size>3"},
			"NamespaceLabels: "},
		"Everything": {"it would watch each namespace for itself", kopf.Settings{NamespaceLabels: " "},
			`NamespaceLabels: " " selects all namespaces: leave it out`},
		"Unwatched": {"labels must be watched", kopf.Settings{
			NamespaceLabels: "team=shop", ScanningDisabled: true,
		}, "which ScanningDisabled forbids"},
		"Right": {"it is a selector", kopf.Settings{NamespaceLabels: "team in (shop,web),!paused"}, ""},
	} {
		op := kopf.New("test.example.org", tc.settings)
		kopf.For(op, &Widget{}).OnCreate("a", succeed)
		_, err := kopf.Plan(op, newScheme(t))
		if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %s: got %v, want %q", name, tc.reason, err, tc.want)
		}
	}
}
