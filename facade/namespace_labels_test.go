package kopf_test

import (
	"strings"
	"testing"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// TestWrongNamespaceLabels shows that a selector of namespaces that selects all of them, or cannot work, is an error of
// the set-up.
func TestWrongNamespaceLabels(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		settings kopf.Settings
		want     string
	}{
		"Syntax": {"a selector with wrong syntax is an error", kopf.Settings{NamespaceLabels: "team=shop,,"},
			"NamespaceLabels: "},
		"Numbers": {"a comparison of numbers is an error: webhook configurations cannot do it",
			kopf.Settings{NamespaceLabels: "size>3"},
			"NamespaceLabels: "},
		"Everything": {"a selector of all namespaces is an error", kopf.Settings{NamespaceLabels: " "},
			`NamespaceLabels: " " selects all namespaces: leave it out`},
		"Unwatched": {"a selector without a watch of namespaces is an error", kopf.Settings{
			NamespaceLabels: "team=shop", ScanningDisabled: true,
		}, "which ScanningDisabled forbids"},
		"Right": {"a valid selector is accepted", kopf.Settings{NamespaceLabels: "team in (shop,web),!paused"}, ""},
	} {
		op := kopf.New("test.example.org", tc.settings)
		kopf.For(op, &Widget{}).OnCreate("a", succeed)
		_, err := kopf.Plan(op, newScheme(t))
		if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %s: got %v, want %q", name, tc.reason, err, tc.want)
		}
	}
}
