package changes_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// TestMalformed is about memory that is broken (deviation D-malformed).
func TestMalformed(t *testing.T) {
	cases := map[string]struct{ reason, name, text string }{
		"Diffbase":     {"without the old state there is no cause", handled, "{"},
		"DiffbaseList": {"JSON, but not an object", handled, "[]"},
		"Interim":      {"without it, an edit would be lost", interim, "oops"},
		"Record":       {"without it, a handler would be called again", prefix + "/a", "{"},
		"RecordType":   {"a count that is none", prefix + "/a", `{"retries":"many"}`},
		"OtherRecord":  {"of a handler for another cause: it may be shared or superseded", prefix + "/u", "{"},
	}
	registered := func() []*handlers.Handler {
		return []*handlers.Handler{onCreate("a", ok), onUpdate("u", ok),
			onDelete("d", fails(2, temporaryError{10 * time.Second})), onDelete("e", ok)}
	}
	for name, tc := range cases {
		run(t, map[string]scenario{
			name: {tc.reason, func(w *world) {
				w.set(tc.text, "metadata", "annotations", tc.name)
				p := w.start(registered()...)
				_, err := p.pass()
				var blocked *changes.BlockedError
				if !errors.As(err, &blocked) || !strings.Contains(err.Error(), tc.name) {
					w.t.Errorf("want a BlockedError that names %s, got %v", tc.name, err)
				}
				w.wantWrites("blocked")
				w.wantCalls("blocked")
				w.set(nil, "metadata", "annotations", tc.name)
				p.settle()
				w.wantCalls("repaired", "0s create a")
				w.wantHandled("repaired", "one")
			}},
			name +
				"Deleted": {"nothing holds a deletion up: it is retried with delays and counted as any other",
				func(w *world) {
					w.start(registered()...).settle()
					w.set(tc.text, "metadata", "annotations", tc.name)
					w.delete()
					w.calls()
					w.drainWrites()
					p := w.start(registered()...)
					p.settle()
					w.wantCalls("deletion", "0s delete d", "0s delete e", "10s delete d", "20s delete d")
					w.wantWrites("deletion", "main 200", "main 200", "main 200")
					w.want("errors", []error(nil), p.errs)
					w.want("stored", map[string]any(nil), w.stored())
				}},
		})
	}
}

// TestMalformedTold is about what is logged of such a deletion, which may take any number of passes.
func TestMalformedTold(t *testing.T) {
	cases := map[string]scenario{}
	for name, c := range map[string]struct {
		reason string
		n      int
		again  bool
	}{
		"Some": {"each is told once", 3, false},
		"Most": {"so it is with as many as there is memory for", 16, false},
		"Many": {"whoever makes more of them has them told again, rather than to take our memory", 17, true},
	} {
		cases[name] = scenario{c.reason, func(w *world) {
			registered := []*handlers.Handler{onDelete("d", fails(9, temporaryError{time.Hour}))}
			for i := range c.n {
				registered = append(registered, onCreate(part(i), ok))
			}
			p := w.start(registered...)
			_, _ = p.pass()
			for i := range c.n {
				w.set("{", "metadata", "annotations", prefix+"/"+part(i))
			}
			w.delete()
			for range 2 {
				_, _ = p.pass()
			}
			for i := range c.n {
				told := 0
				for _, line := range w.logged {
					if strings.Contains(line, "Ignoring malformed progress") && strings.Contains(line, part(i)) {
						told++
					}
				}
				if told == 0 || told > 1 != c.again {
					w.t.Errorf("%s is told of %d times", part(i), told)
				}
			}
		}}
	}
	run(t, cases)
}
