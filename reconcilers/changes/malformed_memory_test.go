package changes_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
)

// TestMalformed shows that malformed memory blocks an object, but not its deletion (deviation D-malformed).
func TestMalformed(t *testing.T) {
	cases := map[string]struct{ reason, name, text string }{
		"Diffbase": {"a malformed last-handled configuration blocks the object", handledAnnotation, "{"},
		"DiffbaseList": {"a last-handled configuration that is not a JSON object blocks the object", handledAnnotation,
			"[]"},
		"Interim": {"malformed interim memory blocks the object, because an edit could be lost", interimAnnotation,
			"oops"},
		"Record":      {"a malformed record blocks the object until it is repaired", prefix + "/a", "{"},
		"RecordType":  {"a malformed number of attempts blocks the object", prefix + "/a", `{"retries":"many"}`},
		"OtherRecord": {"a malformed record of a handler for another cause blocks the object", prefix + "/u", "{"},
	}
	registered := func() []*handlers.Handler {
		return []*handlers.Handler{onCreate("a", ok), onUpdate("u", ok),
			onDelete("d", fails(2, temporaryError{10 * time.Second})), onDelete("e", ok)}
	}
	for name, tc := range cases {
		run(t, map[string]scenario{
			name: {tc.reason, func(w *harness) {
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
				"Deleted": {"malformed memory does not block a deletion, which is retried as usual",
				func(w *harness) {
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

// TestMalformedRecordsAreLogged shows how malformed records are logged during a deletion of several passes.
func TestMalformedRecordsAreLogged(t *testing.T) {
	cases := map[string]scenario{}
	for name, c := range map[string]struct {
		reason string
		n      int
		again  bool
	}{
		"Some": {"each malformed record is logged once", 3, false},
		"Most": {"16 malformed records are logged once each", 16, false},
		"Many": {"more than 16 malformed records are logged again, because the memory for them is limited", 17, true},
	} {
		cases[name] = scenario{c.reason, func(w *harness) {
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
				for _, line := range w.logLines {
					if strings.Contains(line, "Ignoring malformed progress") && strings.Contains(line, part(i)) {
						told++
					}
				}
				if told == 0 || told > 1 != c.again {
					w.t.Errorf("%s is logged %d times", part(i), told)
				}
			}
		}}
	}
	run(t, cases)
}
