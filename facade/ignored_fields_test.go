package kopf_test

import (
	"context"
	"strings"
	"testing"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// TestUnknownIgnoredFields shows that an ignored field that no kind has is an error of the set-up.
func TestUnknownIgnoredFields(t *testing.T) {
	settings := kopf.Settings{Persistence: kopf.PersistenceSettings{IgnoredFields: []string{"spec.sise"}}}
	cases := map[string]struct {
		reason   string
		register func(op *kopf.Operator)
		want     string
	}{
		"Misspelled": {"an ignored field that no kind has is an error", func(op *kopf.Operator) {
			kopf.For(op, &Widget{}).OnCreate("a", succeed)
			kopf.For(op, &Widget{}).OnUpdate("b", succeed)
		}, `IgnoredFields: field spec.sise: kopf_test.Widget has no "spec.sise": did you mean spec.size?`},
		"Dynamic": {"an unstructured kind can have any ignored field", func(op *kopf.Operator) {
			kopf.For(op, &Widget{}).OnCreate("a", succeed)
			kopf.ForResource(op, "gadgets").OnCreate("a", func(context.Context, *Raw) error { return nil })
		}, ""},
		"NoKinds": {"without handlers, ignored fields are not checked", func(*kopf.Operator) {}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org", settings)
			tc.register(op)
			_, err := kopf.Plan(op, newScheme(t))
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}
