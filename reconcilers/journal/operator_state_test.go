package journal_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// TestServedKind shows that a served kind lists its handlers with the conditions of their registration.
func TestServedKind(t *testing.T) {
	long := strings.Repeat("v", 61)
	got := widgetsOf(journal.New(journal.RetentionLimits{})).ServedKind(widgets, []*handlers.Handler{
		{ID: "plain", Reason: cause.Create, Location: "main.go:7"},
		{ID: "asked", Family: handlers.Admitting},
		{ID: "all", NeedsChange: true, Field: diff.Path{"spec", "size"}, FilterDescriptions: handlers.Words{
			Value: "7", From: "8", To: long, Filters: []handlers.Criterion{
				{Text: `WithLabel("tier", "prod")`, Path: diff.Path{"metadata", "labels", "tier"}}, {Text: "When"},
			},
		}},
		{ID: "new", Reason: cause.Update, Field: diff.Path{"spec", "size"},
			FilterDescriptions: handlers.Words{To: "9"}},
	})
	want := journal.ServedKind{
		Kind: "Widget", Group: "example.org", Version: "v1", Resource: "widgets", Namespaced: true,
		Namespaces: []string{},
		Handlers: []journal.RegisteredHandler{
			{ID: "plain", Purpose: "create", Location: "main.go:7"},
			{ID: "all", Purpose: "field", Requirements: []string{
				"field spec.size", "Value(7)", "OldValue(8)", "NewValue(" + long[:60] + "…)",
				`WithLabel("tier", "prod")`, "When",
			}},
			{ID: "new", Purpose: "update", Requirements: []string{"field spec.size", "NewValue(9)"}},
		},
	}
	ignored := cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "words" }, cmp.Ignore())
	if d := cmp.Diff(want, got, cmp.AllowUnexported(journal.ServedKind{}), ignored); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
}

// TestDemandsOfSecrets shows that conditions on secret fields are hidden.
func TestDemandsOfSecrets(t *testing.T) {
	h := &handlers.Handler{ID: "h", Field: diff.Path{"spec", "size"}, FilterDescriptions: handlers.Words{
		Value: "7", Filters: []handlers.Criterion{
			{Text: `WithLabel("tier", "prod")`, Path: diff.Path{"metadata", "labels", "tier"}}, {Text: "When"},
		},
	}}
	cases := map[string]struct {
		reason string
		secret []diff.Path
		want   []string
	}{
		"field": {"conditions on a secret field are hidden, those on labels are not", []diff.Path{{"spec"}},
			[]string{"field spec.size", "Value(secret)", `WithLabel("tier", "prod")`, "When"}},
		"label": {"conditions on secret labels are hidden, those on the field are not",
			[]diff.Path{{"metadata", "labels"}},
			[]string{"field spec.size", "Value(7)", "metadata.labels.tier (secret)", "When"}},
		"all": {"in a secret object all conditions on values are hidden", []diff.Path{nil},
			[]string{"field spec.size", "Value(secret)", "metadata.labels.tier (secret)", "When"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			kind := widgetsOf(journal.New(journal.RetentionLimits{}), c.secret...)
			got := kind.ServedKind(widgets, []*handlers.Handler{h}).Handlers[0].Requirements
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s; -want, +got:\n%s", c.reason, d)
			}
		})
	}
}

// TestStandby shows that a replica on standby says why it is.
func TestStandby(t *testing.T) {
	l := newServingState()
	l.Paused, l.Standby = true, "a_1 holds the Lease ns/demo."
	j := journal.New(journal.RetentionLimits{})
	j.SetLive(l)
	want := "The operator is on standby. a_1 holds the Lease ns/demo. It does not watch objects, and no handlers are " +
		"called."
	if got := explainObject(t, j, w1).Facts; len(got) == 0 || got[0] != want {
		t.Errorf("want %q first, got %q", want, got)
	}
}
