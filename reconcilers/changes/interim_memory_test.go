package changes_test

import (
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// altered changes the JSON of an annotation.
func (w *harness) altered(name string, change func(memory map[string]any)) {
	memory := w.annotation(name).(map[string]any)
	change(memory)
	w.set(string(encoded(memory)), "metadata", "annotations", name)
}

// wantBeside compares a field of the interim memory and a key of the state for which it is valid.
func (w *harness) wantBeside(when, value string, want any, key string) {
	w.t.Helper()
	memory := w.annotation(interimAnnotation)
	w.want(when+": interim", value, at(memory, "spec", "field"))
	w.want(when+": beside."+key, want, at(memory, "$beside", key))
}

// TestInterimMemory shows how the essence that the first successful handler of a cause has seen is stored.
func TestInterimMemory(t *testing.T) {
	later := temporaryError{delay: 10 * time.Second}
	failing := fails(9, later)
	run(t, map[string]scenario{
		"AfterAnother": {"interim memory of another cause is replaced", func(w *harness) {
			interruptUpdate(w).closeCause("three")
			w.set("four", "spec", "field")
			_, _ = w.start(onUpdate("u", ok), onUpdate("v", failing)).pass()
			w.wantBeside("open", "four", "u", "success")
		}},
		"AfterClosed": {"the first success of a new cause opens closed interim memory of the same configuration",
			func(w *harness) {
				closeUpdate(w)
				w.wantBeside("closed", "three", nil, "success")
				_, _ = w.start(onUpdate("u", ok), onUpdate("v", failing)).pass()
				w.wantBeside("open", "three", "u", "success")
			}},
		"Unbound": {"interim memory of a former release stays valid until the cause ends", func(w *harness) {
			interruptUpdate(w)
			w.altered(interimAnnotation, func(memory map[string]any) { delete(memory, "$beside") })
			advanceTime(time.Minute)
			p := w.start(onUpdate("u", ok), onUpdate("v", fails(1, later)))
			_, err := p.pass()
			w.want("error", nil, err)
			w.wantBeside("open", "two", nil, "success")
			p.settle()
			w.wantHandled("all", "two")
			w.wantClean("all")
		}},
		"PartSince": {"the success of a sub-handler is stored with the start of its parent", func(w *harness) {
			_, _ = w.compact(onCreate("a", runs(sub("s", ok), sub("t", failing)))).pass()
			w.wantBeside("open", "one", "a", "success")
			w.wantBeside("open", "one", w.record("a", "started"), "since")
		}},
		"PartBehind": {"a success is found behind a sub-handler that was not called yet", func(w *harness) {
			_, _ = w.start(onCreate("a", runs(
				sub("last", ok, afterSuccess("bad")), sub("good", ok), sub("bad", failing),
			))).pass()
			w.wantBeside("open", "one", "a/good", "success")
		}},
	})
}

// TestFormerSuccesses shows that after a success recorded by another process, an edit is handled as an update.
func TestFormerSuccesses(t *testing.T) {
	later := temporaryError{delay: 10 * time.Second}
	follows := func(w *harness, first []*handlers.Handler, forge func()) {
		_, _ = w.start(first...).pass()
		w.want("interim", "one", at(w.annotation(interimAnnotation), "spec", "field"))
		w.calls()
		forge()
		w.set("two", "spec", "field")
		p := w.start(append(first[:len(first)-1:len(first)-1], onCreate("a", ok), onUpdate("u", ok))...)
		p.settle()
		w.want("errors", []error(nil), p.errs)
		w.wantCalls("all", "10s create a", "10s update u")
		w.wantHandled("all", "two")
	}
	parts := func() []*handlers.Handler {
		return []*handlers.Handler{onCreate("a", runs(sub("s", fails(1, later)), sub("t", ok)))}
	}
	anyCause := func(record map[string]any) { delete(record, "purpose") }
	run(t, map[string]scenario{
		"OfAnyCause": {"a success without a purpose counts for the present cause", func(w *harness) {
			both := []*handlers.Handler{onCreate("b", ok), onCreate("a", fails(1, later))}
			follows(w, both, func() { w.altered(prefix+"/b", anyCause) })
		}},
		"PartOfAnyCause": {"a success of a sub-handler without a purpose counts for the present cause",
			func(w *harness) {
				follows(w, parts(), func() { w.altered(prefix+"/a.t", anyCause) })
			}},
		"PartInSpellings": {"a success listed behind two spellings of another sub-handler is found", func(w *harness) {
			follows(w, parts(), func() {
				w.altered(prefix+"/a", func(record map[string]any) {
					record["subrefs"] = []any{"a/s", "a/s.x", "a/s/x", "a/t"}
				})
			})
		}},
	})
}
