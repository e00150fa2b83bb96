package kopf_test

import (
	"context"
	"strings"
	"testing"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
)

// TestFieldMistakes shows that invalid fields, values, labels and annotations are errors with file and line.
func TestFieldMistakes(t *testing.T) {
	cases := map[string]struct {
		reason   string
		register func(w kopf.Selection[*Widget])
		want     string
	}{
		"no path": {
			"an empty path is an error", func(w kopf.Selection[*Widget]) { w.OnField("fn", "", succeed) },
			"a key is empty",
		},
		"double dot": {
			"a double dot is an error", func(w kopf.Selection[*Widget]) { w.OnField("fn", "spec..a", succeed) },
			"a key is empty",
		},
		"trailing dot": {
			"a trailing dot is an error", func(w kopf.Selection[*Widget]) { w.OnField("fn", "spec.", succeed) },
			"a key is empty",
		},
		"open quote": {
			"an open quote is an error",
			func(w kopf.Selection[*Widget]) { w.OnField("fn", `spec."a`, succeed) }, "does not end before a dot",
		},
		"after a quote": {
			"a quoted key without a dot after it is an error",
			func(w kopf.Selection[*Widget]) { w.OnField("fn", `spec."a"b`, succeed) },
			"does not end before a dot",
		},
		"unknown": {
			"an unknown field is an error that suggests a similar one",
			func(w kopf.Selection[*Widget]) { w.OnField("fn", "spec.sise", succeed) },
			`OnField("fn"): field spec.sise: kopf_test.Widget has no "spec.sise": did you mean spec.size?`,
		},
		"unknown and redacted": {
			"an unknown redacted field is an error",
			func(w kopf.Selection[*Widget]) { w.Redacted("spec.onwer").OnCreate("fn", succeed) },
			`Redacted: field spec.onwer: kopf_test.Widget has no "spec.onwer": did you mean spec.owner?`,
		},
		"label key with dots": {
			"an unquoted label key with dots is an error that suggests quotes",
			func(w kopf.Selection[*Widget]) { w.OnField("fn", "metadata.labels.app.kubernetes.io/name", succeed) },
			`quote keys with dots: metadata.labels."app.kubernetes.io/name"`,
		},
		"two fields": {
			"a field handler with InField is an error", func(w kopf.Selection[*Widget]) {
				w.OnField("fn", "spec.size", succeed, kopf.InField("spec.owner"))
			}, `OnField("fn"): InField(spec.owner): the handler has its field already: spec.size`,
		},
		"two fields by a policy": {
			"a field handler with InField in joined options is an error", func(w kopf.Selection[*Widget]) {
				w.OnField("fn", "spec.size", succeed, kopf.JoinOptions(kopf.InField("spec.owner")))
			}, "the handler has its field already",
		},
		"text for a number": {
			"NewValue with a string for a number is an error",
			func(w kopf.Selection[*Widget]) { w.OnField("fn", "spec.size", succeed, kopf.NewValue("10")) },
			`OnField("fn"): NewValue("10"): field spec.size of kopf_test.Widget never has this value: ` +
				`string cannot be decoded into a Go int32`,
		},
		"old text for a number": {
			"OldValue with a string for a number is an error",
			func(w kopf.Selection[*Widget]) { w.OnField("fn", "spec.size", succeed, kopf.OldValue("10")) },
			`OldValue("10"): field spec.size`,
		},
		"number in a mapping of texts": {
			"Value with a number for a string is an error",
			func(w kopf.Selection[*Widget]) {
				w.OnCreate("fn", succeed, kopf.InField("spec.extra.a"), kopf.Value(10))
			}, `OnCreate("fn"): Value(10): field spec.extra.a`,
		},
		"in a list": {
			"a path into a list is an error",
			func(w kopf.Selection[*Widget]) { w.OnField("fn", "spec.parts.name", succeed) }, "spec.parts has no keys",
		},
		"in a scalar": {
			"a path below a string is an error",
			func(w kopf.Selection[*Widget]) { w.OnField("fn", "spec.owner.name", succeed) },
			"spec.owner has no keys",
		},
		"value of nothing": {
			"Value without a field is an error",
			func(w kopf.Selection[*Widget]) { w.OnCreate("fn", succeed, kopf.Value("x")) }, "need a field",
		},
		"value and to": {"Value together with NewValue is an error", func(w kopf.Selection[*Widget]) {
			w.OnField("fn", "spec.size", succeed, kopf.Value(1), kopf.NewValue(2))
		}, "cannot stand together"},
		"nil value": {
			"a nil value is an error",
			func(w kopf.Selection[*Widget]) { w.OnField("fn", "spec.size", succeed, kopf.NewValue(nil)) },
			"the pattern is nil",
		},
		"no JSON": {
			"a value that is not JSON is an error",
			func(w kopf.Selection[*Widget]) { w.OnField("fn", "spec.size", succeed, kopf.NewValue(make(chan int))) },
			"is not a pattern",
		},
		"nil label": {
			"a nil label is an error",
			func(w kopf.Selection[*Widget]) { w.WithLabel("a", nil).OnCreate("fn", succeed) },
			"the pattern is nil",
		},
		"number for a label": {
			"a number for an annotation is an error",
			func(w kopf.Selection[*Widget]) { w.WithAnnotation("a", 1).OnCreate("fn", succeed) },
			"int is not a pattern",
		},
		"label that cannot be": {
			"an invalid label key is an error",
			func(w kopf.Selection[*Widget]) { w.WithLabel("a/b/c", "x").OnCreate("fn", succeed) },
			`WithLabel("a/b/c"): there are no labels with such a key`,
		},
		"value that no label has": {
			"an invalid label value is an error",
			func(w kopf.Selection[*Widget]) { w.WithLabel("a", "x y").OnCreate("fn", succeed) },
			`WithLabel("a"): there are no labels with the value "x y"`,
		},
		"annotation that cannot be": {
			"an invalid annotation key is an error",
			func(w kopf.Selection[*Widget]) { w.WithAnnotation("a b", "x").OnCreate("fn", succeed) },
			`WithAnnotation("a b"): there are no annotations with such a key`,
		},
		"no presence": {
			"an undefined Presence is an error",
			func(w kopf.Selection[*Widget]) {
				w.OnField("fn", "spec.size", succeed, kopf.NewValue(kopf.Presence(7)))
			},
			"kopf.Presence(7) is not a pattern",
		},
		"label without key": {
			"an empty label key is an error",
			func(w kopf.Selection[*Widget]) { w.WithLabel("", "x").OnCreate("fn", succeed) },
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

// TestFieldMistakesOfSubs shows that an invalid field of a sub-handler, which is declared while its handler runs,
// fails the handler permanently.
func TestFieldMistakesOfSubs(t *testing.T) {
	cases := map[string]struct {
		reason, field string
		opts          []kopf.Option
		want          string
	}{
		"unknown": {"an unknown field of a sub-handler is an error", "", []kopf.Option{kopf.InField("spec.sise")},
			`sub-handler "s" of handler "fn": field spec.sise: kopf_test.Widget has no "spec.sise": did you mean`},
		"unknown in a field": {
			"fields of a sub-handler are relative to the handler's field", "spec", []kopf.Option{kopf.InField("sise")},
			"did you mean spec.size?"},
		"text for a number": {"a string for a number in a sub-handler is an error", "",
			[]kopf.Option{kopf.InField("spec.size"), kopf.NewValue("1")}, `NewValue("1"): field spec.size`},
		"text for the field of the handler": {"a string for the number of the handler's field is an error", "spec.size",
			[]kopf.Option{kopf.NewValue("1")}, `NewValue("1"): field spec.size`},
		"right": {
			"a sub-handler with a valid field is declared",
			"", []kopf.Option{kopf.InField("spec.size"), kopf.NewValue(1)}, ""},
		"right in a field": {
			"a sub-handler with a valid relative field is declared",
			"spec", []kopf.Option{kopf.InField("size"), kopf.Value(1)}, ""},
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
					t.Errorf("%s: got %d sub-handlers, want 1", tc.reason, len(held.declared))
				}
				return
			}
			wantFailed(t, a, tc.want)
		})
	}
}
