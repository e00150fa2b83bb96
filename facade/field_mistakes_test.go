package kopf_test

import (
	"context"
	"strings"
	"testing"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

func TestFieldMistakes(t *testing.T) {
	cases := map[string]struct {
		reason   string
		register func(w kopf.Selection[*Widget])
		want     string
	}{
		"no path": {
			"the root is no field", func(w kopf.Selection[*Widget]) { w.OnField("fn", "", succeed) },
			"a key is empty",
		},
		"double dot": {
			"a key is missing", func(w kopf.Selection[*Widget]) { w.OnField("fn", "spec..a", succeed) },
			"a key is empty",
		},
		"trailing dot": {
			"a key is missing", func(w kopf.Selection[*Widget]) { w.OnField("fn", "spec.", succeed) },
			"a key is empty",
		},
		"open quote": {
			"nobody knows where the key ends",
			func(w kopf.Selection[*Widget]) { w.OnField("fn", `spec."a`, succeed) }, "does not end before a dot",
		},
		"after a quote": {
			"two keys need a dot", func(w kopf.Selection[*Widget]) { w.OnField("fn", `spec."a"b`, succeed) },
			"does not end before a dot",
		},
		"unknown": {
			"a typing error would never be called",
			func(w kopf.Selection[*Widget]) { w.OnField("fn", "spec.sise", succeed) },
			`OnField("fn"): field spec.sise: kopf_test.Widget has no "spec.sise": did you mean spec.size?`,
		},
		"unknown and redacted": {
			"a typing error would leave a secret readable",
			func(w kopf.Selection[*Widget]) { w.Redacted("spec.onwer").OnCreate("fn", succeed) },
			`Redacted: field spec.onwer: kopf_test.Widget has no "spec.onwer": did you mean spec.owner?`,
		},
		"label key with dots": {
			"dots lead into the label otherwise, where nothing is",
			func(w kopf.Selection[*Widget]) { w.OnField("fn", "metadata.labels.app.kubernetes.io/name", succeed) },
			`quote keys with dots: metadata.labels."app.kubernetes.io/name"`,
		},
		"two fields": {
			"only one of them can be compared", func(w kopf.Selection[*Widget]) {
				w.OnField("fn", "spec.size", succeed, kopf.InField("spec.owner"))
			}, `OnField("fn"): InField(spec.owner): the handler has its field already: spec.size`,
		},
		"two fields by a policy": {
			"the same from afar", func(w kopf.Selection[*Widget]) {
				w.OnField("fn", "spec.size", succeed, kopf.JoinOptions(kopf.InField("spec.owner")))
			}, "the handler has its field already",
		},
		"text for a number": {
			"a text is never equal to a number",
			func(w kopf.Selection[*Widget]) { w.OnField("fn", "spec.size", succeed, kopf.NewValue("10")) },
			`OnField("fn"): NewValue("10"): field spec.size of kopf_test.Widget never has this value: ` +
				`string cannot be decoded into a Go int32`,
		},
		"old text for a number": {
			"the same before the change",
			func(w kopf.Selection[*Widget]) { w.OnField("fn", "spec.size", succeed, kopf.OldValue("10")) },
			`OldValue("10"): field spec.size`,
		},
		"number in a mapping of texts": {
			"the same with Value, and InField",
			func(w kopf.Selection[*Widget]) {
				w.OnCreate("fn", succeed, kopf.InField("spec.extra.a"), kopf.Value(10))
			}, `OnCreate("fn"): Value(10): field spec.extra.a`,
		},
		"in a list": {
			"lists are compared as a whole",
			func(w kopf.Selection[*Widget]) { w.OnField("fn", "spec.parts.name", succeed) }, "spec.parts has no keys",
		},
		"in a scalar": {
			"there is nothing below", func(w kopf.Selection[*Widget]) { w.OnField("fn", "spec.owner.name", succeed) },
			"spec.owner has no keys",
		},
		"value of nothing": {
			"it would never be asked",
			func(w kopf.Selection[*Widget]) { w.OnCreate("fn", succeed, kopf.Value("x")) }, "need a field",
		},
		"value and to": {"they say two things of one", func(w kopf.Selection[*Widget]) {
			w.OnField("fn", "spec.size", succeed, kopf.Value(1), kopf.NewValue(2))
		}, "cannot stand together"},
		"nil value": {
			"null or absent?",
			func(w kopf.Selection[*Widget]) { w.OnField("fn", "spec.size", succeed, kopf.NewValue(nil)) },
			"the pattern is nil",
		},
		"no JSON": {
			"nothing is equal to it",
			func(w kopf.Selection[*Widget]) { w.OnField("fn", "spec.size", succeed, kopf.NewValue(make(chan int))) },
			"is not a pattern",
		},
		"nil label": {
			"null is no label", func(w kopf.Selection[*Widget]) { w.WithLabel("a", nil).OnCreate("fn", succeed) },
			"the pattern is nil",
		},
		"number for a label": {
			"labels are strings", func(w kopf.Selection[*Widget]) { w.WithAnnotation("a", 1).OnCreate("fn", succeed) },
			"int is not a pattern",
		},
		"label that cannot be": {
			"no object has it", func(w kopf.Selection[*Widget]) { w.WithLabel("a/b/c", "x").OnCreate("fn", succeed) },
			`WithLabel("a/b/c"): there are no labels with such a key`,
		},
		"value that no label has": {
			"no object has it", func(w kopf.Selection[*Widget]) { w.WithLabel("a", "x y").OnCreate("fn", succeed) },
			`WithLabel("a"): there are no labels with the value "x y"`,
		},
		"annotation that cannot be": {
			"no object has it",
			func(w kopf.Selection[*Widget]) { w.WithAnnotation("a b", "x").OnCreate("fn", succeed) },
			`WithAnnotation("a b"): there are no annotations with such a key`,
		},
		"no presence": {
			"a number is no presence",
			func(w kopf.Selection[*Widget]) {
				w.OnField("fn", "spec.size", succeed, kopf.NewValue(kopf.Presence(7)))
			},
			"kopf.Presence(7) is not a pattern",
		},
		"label without key": {
			"no label is called so", func(w kopf.Selection[*Widget]) { w.WithLabel("", "x").OnCreate("fn", succeed) },
			"the key is empty",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org")
			tc.register(kopf.For(op, &Widget{}))
			_, err := kopf.Plan(op, newScheme(t))
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(
				err.Error(), "field_mistakes_test.go:",
			) {
				t.Errorf("%s: got %v, want %q with a location", tc.reason, err, tc.want)
			}
		})
	}
}

// Sub-handlers are declared while their handler runs, so they fail it, for good.
func TestFieldMistakesOfSubs(t *testing.T) {
	cases := map[string]struct {
		reason, field string
		opts          []kopf.Option
		want          string
	}{
		"unknown": {"it would never be called", "", []kopf.Option{kopf.InField("spec.sise")},
			`sub-handler "s" of handler "fn": field spec.sise: kopf_test.Widget has no "spec.sise": did you mean`},
		"unknown in a field": {"paths begin at the handler's", "spec", []kopf.Option{kopf.InField("sise")},
			"did you mean spec.size?"},
		"text for a number": {"a text is never equal to a number", "",
			[]kopf.Option{kopf.InField("spec.size"), kopf.NewValue("1")}, `NewValue("1"): field spec.size`},
		"text for the field of the handler": {"the sub-handler has it, too", "spec.size",
			[]kopf.Option{kopf.NewValue("1")}, `NewValue("1"): field spec.size`},
		"right":            {"all of it can be", "", []kopf.Option{kopf.InField("spec.size"), kopf.NewValue(1)}, ""},
		"right in a field": {"all of it can be", "spec", []kopf.Option{kopf.InField("size"), kopf.Value(1)}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org")
			split := func(_ context.Context, c *Change) error {
				c.Sub("s", succeed, kopf.JoinOptions(tc.opts...))
				return nil
			}
			if tc.field == "" {
				kopf.For(op, &Widget{}).OnCreate("fn", split)
			} else {
				kopf.For(op, &Widget{}).OnField("fn", tc.field, split)
			}
			held := &subs{}
			a := call(t, op, body(nil), nil, func(a *execution.Attempt) { a.Call.Subs = held })
			if tc.want == "" {
				if wantFailed(t, a, ""); len(held.declared) != 1 {
					t.Errorf("%s: %d are declared", tc.reason, len(held.declared))
				}
				return
			}
			wantFailed(t, a, tc.want)
		})
	}
}
