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

// TestFormerIDMistakes shows that wrong former ids are errors of the set-up.
func TestFormerIDMistakes(t *testing.T) {
	type widgets = kopf.Selection[*Widget]
	nothing := func(context.Context, *Change) error { return nil }
	for name, tc := range map[string]struct {
		reason   string
		register func(s widgets)
		want     string // empty: no error
	}{
		"two claimants": {
			"two handlers cannot take over the record of one former id",
			func(s widgets) {
				s.OnCreate("a", nothing, kopf.FormerIDs("old"))
				s.OnUpdate("b", nothing, kopf.FormerIDs("old"))
			},
			`OnUpdate("b"): the former id "old" is a former id of OnCreate("a") at `,
		},
		"id in use": {
			"a former id cannot be the id of another handler",
			func(s widgets) {
				s.OnCreate("a", nothing, kopf.FormerIDs("old"))
				s.OnUpdate("old", nothing)
			},
			`OnCreate("a"): the former id "old" belongs to OnUpdate("old") at `,
		},
		"id in use before": {
			"the check does not depend on the order of registration",
			func(s widgets) {
				s.OnUpdate("old", nothing)
				s.OnCreate("a", nothing, kopf.FormerIDs("old"))
			},
			`OnCreate("a"): the former id "old" belongs to OnUpdate("old") at `,
		},
		"id of a daemon": {
			"a former id cannot be the id of a daemon, which keeps results in the same place",
			func(s widgets) {
				s.Daemon("old", func(context.Context, *kopf.Task[*Widget]) error { return nil })
				s.OnCreate("a", nothing, kopf.FormerIDs("old"))
			},
			`the former id "old" belongs to Daemon("old") at `,
		},
		"id of a handler of events": {
			"a former id cannot be the id of an event handler, whose result would be removed",
			func(s widgets) {
				s.OnEvent("old", func(context.Context, *kopf.WatchEvent[*Widget]) error { return nil })
				s.OnCreate("a", nothing, kopf.FormerIDs("old"))
			},
			`the former id "old" belongs to OnEvent("old") at `,
		},
		"id of a handler of children": {
			"a former id cannot be the id of a child handler, whose result would be removed",
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
			"a former id can be the id of an index, which does not store anything",
			func(s widgets) {
				s.OnCreate("a", nothing, kopf.FormerIDs("old"))
				kopf.NewIndex(s, "old", func(context.Context, *Widget) (map[string]string, error) { return nil, nil })
			}, "",
		},
		"itself": {
			"a former id cannot be the present id: each write would remove the record",
			func(s widgets) { s.OnCreate("a", nothing, kopf.FormerIDs("a")) },
			`OnCreate("a"): FormerIDs("a"): this is the present id`,
		},
		"place of the operator": {
			"a former id cannot be the name of the framework's own annotation",
			func(s widgets) { s.OnCreate("a", nothing, kopf.FormerIDs("last-handled-configuration")) },
			"is the framework's own; choose another id",
		},
		"none": {
			"FormerIDs without an id is an error",
			func(s widgets) { s.OnCreate("a", nothing, kopf.FormerIDs()) }, "give the former ids",
		},
		"empty": {
			"an empty former id is an error",
			func(s widgets) { s.OnCreate("a", nothing, kopf.FormerIDs("")) }, `FormerIDs("")`,
		},
		"field and whole": {
			"a handler and a field handler can have the same former id",
			func(s widgets) {
				s.OnCreate("a", nothing, kopf.FormerIDs("old"))
				s.OnField("a", "spec.size", nothing, kopf.FormerIDs("old"))
			}, "",
		},
		"one id under two verbs": {
			"two verbs with the same id share the record and the former id",
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

// TestFormerIDMistakesOfSubHandlers shows that wrong former ids of sub-handlers fail their handler permanently when the
// sub-handlers are declared.
func TestFormerIDMistakesOfSubHandlers(t *testing.T) {
	nothing := func(context.Context, *Change) error { return nil }
	for name, tc := range map[string]struct {
		reason  string
		declare func(c *Change)
		want    string
	}{
		"two claimants": {
			"two sub-handlers cannot take over the record of one former id",
			func(c *Change) {
				c.Sub("a", nothing, kopf.FormerIDs("old"))
				c.Sub("b", nothing, kopf.FormerIDs("old"))
			},
			`sub-handler "handler/b": the former id "handler/old" belongs to another sub-handler`,
		},
		"id in use": {
			"a former id cannot be the id of another sub-handler",
			func(c *Change) {
				c.Sub("a", nothing, kopf.FormerIDs("old"))
				c.Sub("old", nothing)
			},
			`sub-handler "handler/a": the former id "handler/old" belongs`,
		},
		"id in use before": {
			"the check does not depend on the order of declaration",
			func(c *Change) {
				c.Sub("old", nothing)
				c.Sub("a", nothing, kopf.FormerIDs("old"))
			},
			`sub-handler "handler/a": the former id "handler/old" belongs`,
		},
		"after a former id": {
			"After does not accept a former id, which works only until the record is taken over",
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
