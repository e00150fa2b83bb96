package kopf_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
)

func TestFormerIDMistakes(t *testing.T) {
	type widgets = kopf.Selection[*Widget]
	nothing := func(context.Context, *Change) error { return nil }
	for name, tc := range map[string]struct {
		reason   string
		register func(s widgets)
		want     string // empty if it is none
	}{
		"two claimants": {
			"both would go on with one record",
			func(s widgets) {
				s.OnCreate("a", nothing, kopf.FormerIDs("old"))
				s.OnUpdate("b", nothing, kopf.FormerIDs("old"))
			},
			`OnUpdate("b"): the former id "old" is a former id of OnCreate("a") at `,
		},
		"id in use": {
			"the record belongs to the other handler",
			func(s widgets) {
				s.OnCreate("a", nothing, kopf.FormerIDs("old"))
				s.OnUpdate("old", nothing)
			},
			`OnCreate("a"): the former id "old" belongs to OnUpdate("old") at `,
		},
		"id in use before": {
			"the order of registration does not matter",
			func(s widgets) {
				s.OnUpdate("old", nothing)
				s.OnCreate("a", nothing, kopf.FormerIDs("old"))
			},
			`OnCreate("a"): the former id "old" belongs to OnUpdate("old") at `,
		},
		"id of a daemon": {
			"results of both are in one place",
			func(s widgets) {
				s.Daemon("old", func(context.Context, *kopf.Task[*Widget]) error { return nil })
				s.OnCreate("a", nothing, kopf.FormerIDs("old"))
			},
			`the former id "old" belongs to Daemon("old") at `,
		},
		"id of a handler of events": {
			"its result would be removed",
			func(s widgets) {
				s.OnEvent("old", func(context.Context, *kopf.WatchEvent[*Widget]) error { return nil })
				s.OnCreate("a", nothing, kopf.FormerIDs("old"))
			},
			`the former id "old" belongs to OnEvent("old") at `,
		},
		"id of a handler of children": {
			"its result would be removed",
			func(s widgets) {
				s.OnCreate("a", nothing, kopf.FormerIDs("old"))
				s.Owns(&corev1.ConfigMap{})
				kopf.OnChild(s, "old", func(context.Context, *kopf.ChildEvent[*Widget, *corev1.ConfigMap]) error {
					return nil
				})
			},
			`the former id "old" belongs to OnChild("old") at `,
		},
		"id of an index": {
			"an index does not store anything",
			func(s widgets) {
				s.OnCreate("a", nothing, kopf.FormerIDs("old"))
				kopf.NewIndex(s, "old", func(context.Context, *Widget) (map[string]string, error) { return nil, nil })
			}, "",
		},
		"itself": {
			"a record would be removed as it is written",
			func(s widgets) { s.OnCreate("a", nothing, kopf.FormerIDs("a")) },
			`OnCreate("a"): FormerIDs("a"): this is the present id`,
		},
		"place of the operator": {
			"the last-handled configuration would be removed",
			func(s widgets) { s.OnCreate("a", nothing, kopf.FormerIDs("last-handled-configuration")) },
			"is the framework's own; choose another id",
		},
		"none": {
			"it would do nothing",
			func(s widgets) { s.OnCreate("a", nothing, kopf.FormerIDs()) }, "give the former ids",
		},
		"empty": {
			"no handler has it",
			func(s widgets) { s.OnCreate("a", nothing, kopf.FormerIDs("")) }, `FormerIDs("")`,
		},
		"field and whole": {
			"the ids differ by the field",
			func(s widgets) {
				s.OnCreate("a", nothing, kopf.FormerIDs("old"))
				s.OnField("a", "spec.size", nothing, kopf.FormerIDs("old"))
			}, "",
		},
		"one id under two verbs": {
			"they share the record",
			func(s widgets) {
				s.OnCreate("a", nothing, kopf.FormerIDs("old"))
				s.OnUpdate("a", nothing, kopf.FormerIDs("old"))
			}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org")
			tc.register(kopf.For(op, &Widget{}))
			err := op.SetupWithManager(newManager(t, newScheme(t)))
			if got := fmt.Sprint(err); err == nil && tc.want != "" || err != nil && tc.want == "" ||
				!strings.Contains(got, tc.want) {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// Mistakes of sub-handlers are found when they are declared, and fail their handler permanently.
func TestFormerIDMistakesOfSubHandlers(t *testing.T) {
	nothing := func(context.Context, *Change) error { return nil }
	for name, tc := range map[string]struct {
		reason  string
		declare func(c *Change)
		want    string
	}{
		"two claimants": {
			"both would go on with one record",
			func(c *Change) {
				c.Sub("a", nothing, kopf.FormerIDs("old"))
				c.Sub("b", nothing, kopf.FormerIDs("old"))
			},
			`sub-handler "handler/b": the former id "handler/old" belongs to another sub-handler`,
		},
		"id in use": {
			"the record belongs to the other sub-handler",
			func(c *Change) {
				c.Sub("a", nothing, kopf.FormerIDs("old"))
				c.Sub("old", nothing)
			},
			`sub-handler "handler/a": the former id "handler/old" belongs`,
		},
		"id in use before": {
			"the order of declaration does not matter",
			func(c *Change) {
				c.Sub("old", nothing)
				c.Sub("a", nothing, kopf.FormerIDs("old"))
			},
			`sub-handler "handler/a": the former id "handler/old" belongs`,
		},
		"after a former id": {
			"it would work only until the record is taken over",
			func(c *Change) {
				c.Sub("a", nothing, kopf.FormerIDs("old"))
				c.Sub("b", nothing, kopf.After("old"))
			},
			`comes after "old", which is a former id: give the present one, of "handler/a"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := facadetest.NewChange(&Widget{}).Call(t.Context(), func(_ context.Context, c *Change) error {
				tc.declare(c)
				return nil
			})
			if !got.Final || got.Err == nil || !strings.Contains(got.Err.Error(), tc.want) {
				t.Errorf("%s: got %v, want %q", tc.reason, got.Err, tc.want)
			}
		})
	}
}
