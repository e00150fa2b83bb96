package storages_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/storages"
)

// TestFormerIDsOf shows that sub-handlers get their former ids from their handler.
func TestFormerIDsOf(t *testing.T) {
	renamed := storages.Renamed{}.AddFormerIDs("new", []string{"old"}).AddFormerIDs("new/spec.x",
		nil).AddFormerIDs("other", nil)
	cases := map[string]struct {
		reason, id string
		want       []string
	}{
		"Renamed": {reason: "a renamed handler has its former id", id: "new", want: []string{"old"}},
		"Part":    {reason: "a sub-handler is renamed with its handler", id: "new/part", want: []string{"old/part"}},
		"PartOfPart": {reason: "a nested sub-handler is renamed with its handler",
			id: "new/a/b", want: []string{"old/a/b"}},
		"Field":     {reason: "a handler of a field is not a sub-handler", id: "new/spec.x"},
		"FieldPart": {reason: "a sub-handler of a field handler is not renamed", id: "new/spec.x/part"},
		"Longer":    {reason: "an id with the same beginning is another id", id: "newer"},
		"Other":     {reason: "other handlers are not renamed", id: "other"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, renamed.FormerIDs(tc.id)); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}
