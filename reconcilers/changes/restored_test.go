package changes_test

import (
	"strings"
	"sync"
	"testing"
)

// A patch that removes a field which the schema has a default for is logged once for its handler.
func TestPatchesWithoutEffect(t *testing.T) {
	const line = "A patch had no effect"
	run(t, map[string]scenario{
		"Default": {"the field is as before, so the loss needs a log line", func(w *world) {
			w.webhook = func(body map[string]any) {
				if at(body, "spec", "enabled") == nil {
					put(body, true, "spec", "enabled")
				}
			}
			p := w.start(onCreate("c", patches(nil, "spec", "enabled")), onUpdate("u", patches(nil, "spec", "enabled")))
			p.handling.Restored = &sync.Map{}
			w.set(true, "spec", "enabled")
			p.settle()
			for _, value := range []string{"two", "three", "four"} {
				w.set(value, "spec", "field")
				p.settle()
			}
			w.want("lines", 2, strings.Count(strings.Join(w.logged, "\n"), line))
			w.want("creation", true, w.hasLogged(line, `"handlers"=["c"]`, `"fields"=["spec.enabled"]`))
			w.want("updates", true, w.hasLogged(line, `"handlers"=["u"]`, `"fields"=["spec.enabled"]`))
		}},
		"NoDefault": {"a field that is gone is an effect", func(w *world) {
			p := w.start(onCreate("c", patches(nil, "spec", "enabled")))
			p.handling.Restored = &sync.Map{}
			w.set(true, "spec", "enabled")
			p.settle()
			w.want("logged", false, w.hasLogged(line))
		}},
	})
}
