package changes_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

const separateSuffix = "-ofExample"

// wantSeparateMemory compares the separate memory of the object, and checks that the memory copied from another object
// is unchanged.
func (w *harness) wantSeparateMemory(when, essence string) {
	w.t.Helper()
	w.wantAt(when, essence+"\n", "metadata", "annotations", handledAnnotation+separateSuffix)
	w.wantAt(when, "uid-1", "metadata", "annotations", boundToAnnotation+separateSuffix)
	w.wantAt(when, "of-another", "metadata", "annotations", boundToAnnotation)
	w.wantAt(when, `{"spec":{"field":"of another"}}`, "metadata", "annotations", handledAnnotation)
}

// wantNoSeparateMemory checks that the object has no separate memory.
func (w *harness) wantNoSeparateMemory(when string) {
	w.t.Helper()
	annotations, _ := w.at("metadata", "annotations").(map[string]any)
	for key := range annotations {
		if strings.HasSuffix(key, separateSuffix) {
			w.t.Errorf("%s: %s is left on the object: %v", when, key, annotations[key])
		}
	}
}

// startFormerRelease starts a process of a release that does not read separate memory.
func (w *harness) startFormerRelease(registered ...*handlers.Handler) *process {
	return w.startWith(annotationStores, registered...)
}

// TestMemoryKeptApart shows how objects keep their memory separately if another client repeatedly copies another
// object's annotations to them (deviation D-lost-memory).
func TestMemoryKeptApart(t *testing.T) {
	later := temporaryError{delay: time.Minute}
	registered := []*handlers.Handler{onCreate("c", ok), onUpdate("u", ok)}
	begin := func(w *harness) *process {
		p := w.start(registered...)
		p.settle()
		w.copyMemory()
		p.settle()
		w.wantCalls("begin", "0s create c")
		w.drainWrites()
		return p
	}
	run(t, map[string]scenario{
		"Steady": {"repeated copies cause no call, no write and no log line", func(w *harness) {
			p := begin(w)
			w.want("logged", true, w.hasLogged("Another client has removed"))
			w.logLines = nil
			for range 100 {
				w.copyMemory()
				p.settle()
			}
			w.wantCalls("copied again")
			w.wantWrites("copied again")
			w.wantSeparateMemory("copied again", `{"spec":{"field":"one"}}`)
			w.want("logged", false, w.hasLogged("Another client has removed"))
		}},
		"Restarted": {"a new process reads and writes the separate memory", func(w *harness) {
			begin(w)
			p := w.start(registered...)
			p.settle()
			w.wantCalls("restarted")
			w.wantWrites("restarted")
			w.set("two", "spec", "field")
			p.settle()
			w.wantCalls("edited", "0s update u")
			w.wantSeparateMemory("edited", `{"spec":{"field":"two"}}`)
			w.start(registered...).settle()
			w.wantCalls("restarted again")
		}},
		"Unfinished": {"a new process continues to count the attempts in the separate memory", func(w *harness) {
			failing := onCreate("c", fails(99, later), retries(3))
			p := w.start(failing)
			_, _ = p.pass()
			w.copyMemory()
			time.Sleep(time.Minute)
			_, _ = p.pass()
			w.want("attempts", int64(2), at(w.annotation(prefix+"/c"+separateSuffix), "retries"))
			w.wantAt("copied", "of-another", "metadata", "annotations", boundToAnnotation)
			w.copyMemory()
			q := w.start(failing)
			q.settle()
			w.want("calls", 3, len(w.calls()))
			w.wantAt("removed", nil, "metadata", "annotations", prefix+"/c"+separateSuffix)
			w.wantSeparateMemory("ended", `{"spec":{"field":"one"}}`)
		}},
		"CopyRemoved": {"separate memory stays valid if the copied memory is removed", func(w *harness) {
			begin(w)
			w.set(nil, "metadata", "annotations", boundToAnnotation)
			w.set(nil, "metadata", "annotations", handledAnnotation)
			p := w.start(registered...)
			p.settle()
			w.wantCalls("removed")
			w.set("two", "spec", "field")
			p.settle()
			w.wantCalls("edited", "0s update u")
		}},
		"UsualKeysAgain": {"memory under the usual keys wins, and the next write removes the other", func(w *harness) {
			begin(w)
			w.startFormerRelease(registered...).settle()
			w.wantCalls("former release", "0s create c") // this release handles copies as new objects
			w.set("two", "spec", "field")
			w.startFormerRelease(registered...).settle()
			w.wantCalls("former release", "0s update u")
			p := w.start(registered...)
			p.settle()
			w.wantCalls("present release")
			w.set("three", "spec", "field")
			p.settle()
			w.wantCalls("edited", "0s update u")
			w.wantNoSeparateMemory("edited")
			w.wantHandled("edited", "three")
			w.wantClean("edited")
		}},
		"BothFit": {"separate memory that is not needed any more is removed at once", func(w *harness) {
			begin(w)
			w.startFormerRelease(registered...).settle()
			w.calls()
			w.drainWrites()
			p := w.start(registered...)
			p.settle()
			w.wantCalls("present release")
			w.wantWrites("present release", "main 200")
			w.wantNoSeparateMemory("present release")
			w.wantClean("present release")
			w.want("errors", []error(nil), p.errs)
		}},
		"OfTheSameKind": {"separate memory of another object of the same kind is ignored and removed",
			func(w *harness) {
				begin(w)
				w.copyOf(w.stored())
				w.start(registered...).settle()
				w.wantCalls("copied", "0s create c")
				w.wantNoSeparateMemory("copied")
				w.wantClean("copied")
				w.wantHandled("copied", "one")
				w.wantAt("bound", "uid-copy", "metadata", "annotations", boundToAnnotation)
			}},
		"HandledAgain": {"without its separate configuration, the object is created again", func(w *harness) {
			p := begin(w)
			w.set(nil, "metadata", "annotations", handledAnnotation+separateSuffix)
			p.settle()
			w.wantCalls("removed", "0s create c")
			w.wantSeparateMemory("removed", `{"spec":{"field":"one"}}`)
		}},
		"Deleted": {"a deletion removes separate records from an object that others hold", func(w *harness) {
			w.set([]any{"others/finalizer"}, "metadata", "finalizers")
			p := w.start(onCreate("c", ok), onDelete("d", fails(1, later)))
			p.settle()
			w.copyMemory()
			p.settle()
			w.delete()
			_, _ = p.pass()
			w.want("attempts", int64(1), at(w.annotation(prefix+"/d"+separateSuffix), "retries"))
			q := w.start(onCreate("c", ok), onDelete("d", ok))
			q.settle()
			w.wantCalls("all", "0s create c", "0s delete d", "1m0s delete d")
			w.wantAt("removed", nil, "metadata", "annotations", prefix+"/d"+separateSuffix)
			w.wantAt("held", []any{"others/finalizer"}, "metadata", "finalizers")
		}},
		"Alternating": {"two releases handle an object in turn and repeat no change", func(w *harness) {
			for i, field := range []string{"one", "two", "three", "four", "five", "six"} {
				w.set(field, "spec", "field")
				start, want := w.start, "0s update u"
				if i%2 == 1 {
					start = w.startFormerRelease
				}
				if i == 0 {
					want = "0s create c"
				}
				start(registered...).settle()
				w.wantCalls(field, want)
				w.wantHandled(field, field)
				w.wantNoSeparateMemory(field)
				w.wantClean(field)
			}
		}},
		"AlternatingInTheMiddle": {"two releases count the attempts of a failing handler together", func(w *harness) {
			failing := onCreate("c", fails(99, later), retries(4))
			for i := range 6 {
				start := w.start
				if i%2 == 1 {
					start = w.startFormerRelease
				}
				_, _ = start(failing).pass()
				time.Sleep(time.Minute)
			}
			w.want("attempts", 4, len(w.calls()))
			w.wantNoSeparateMemory("ended")
			w.wantClean("ended")
		}},
	})
}
