package changes_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
)

// resumeAfterPause returns the same operator after a pause of a minute, with its memory of the object.
func (p *process) resumeAfterPause(registered ...*handlers.Handler) *process {
	time.Sleep(time.Minute)
	q := p.start(registered...)
	q.memory = p.memory
	return q
}

// TestPauses shows what happens to outcomes that could not be written before a pause, in which another operator may
// have handled the object.
func TestPauses(t *testing.T) {
	later := temporaryError{delay: 10 * time.Second}
	marks := patches("x", "status", "id")
	run(t, map[string]scenario{
		"Nobody": {"without another operator, an unwritten outcome is written after the pause", func(w *harness) {
			w.forbidWrites(30 * time.Second)
			p := w.start(onCreate("a", marks))
			_, _ = p.pass()
			w.wantCalls("before", "0s create a")
			q := p.resumeAfterPause(onCreate("a", marks), onUpdate("u", ok))
			q.settle()
			w.wantCalls("after")
			w.wantAt("after", "x", "status", "id")
			w.wantHandled("after", "one")
		}},
		"Paused": {"a paused operator calls no handler and adds no finalizer", func(w *harness) {
			p, open := w.start(onCreate("a", ok), onDelete("d", ok)), false
			p.handling.Gate = gate(func() bool { return open })
			next, err := p.pass()
			if err != nil || next.RequeueAfter != nil {
				w.t.Errorf("want no delay and no error, got %v, error %v", next.RequeueAfter, err)
			}
			w.wantCalls("paused")
			w.wantWrites("paused: no finalizer either")
			open = true
			p.settle()
			w.wantCalls("open again", "0s create a")
		}},
		"Ended": {"an outcome is dropped if another operator has ended the cause", func(w *harness) {
			w.forbidWrites(30 * time.Second)
			p := w.start(onCreate("a", marks))
			_, _ = p.pass()
			w.calls()
			otherOperator{w}.closeCause("one")
			q := p.resumeAfterPause(onCreate("a", marks))
			q.settle()
			w.wantCalls("after")
			w.wantAt("after", nil, "status", "id")
			w.want("logged", true, w.hasLogged("Another operator has acted in the pause", `"handlers"=["a"]`))
			w.want("memory", true, q.memory.IsEmpty())
		}},
		"Begun": {"the progress of another operator that has begun the cause is continued", func(w *harness) {
			w.forbidWrites(30 * time.Second)
			p := w.start(onCreate("a", all(marks, fails(1, later))))
			_, _ = p.pass()
			time.Sleep(time.Minute)
			_, _ = w.start(onCreate("a", fails(1, temporaryError{delay: time.Hour}))).pass()
			w.wantCalls("before", "0s create a", "1m0s create a")
			p.resumeAfterPause(onCreate("a", ok)).settle()
			w.wantCalls("after", "1h1m0s create a")
			w.wantAt("after", nil, "status", "id")
		}},
		"MalformedPart": {"an object waits for its repair if a malformed record hides its owner", func(w *harness) {
			registered := onCreate("a", runs(sub("s", fails(1, later))))
			w.forbidWrites(30 * time.Second)
			p := w.start(registered)
			_, _ = p.pass()
			w.wantCalls("before", "0s create a")
			w.drainWrites()
			w.set("{", "metadata", "annotations", prefix+"/a.s")
			q := p.resumeAfterPause(registered)
			_, err := q.pass()
			var blocked *changes.BlockedError
			if !errors.As(err, &blocked) || !strings.Contains(err.Error(), prefix+"/a.s") {
				w.t.Errorf("want a BlockedError that names the annotation, got %v", err)
			}
			w.wantWrites("malformed")
			w.set(nil, "metadata", "annotations", prefix+"/a.s")
			q.settle()
			w.wantCalls("after", "1m0s create a")
			w.wantClean("after")
		}},
	})
}

// TestResumingPauses shows that resume handlers are called until they are finished, and then not again.
func TestResumingPauses(t *testing.T) {
	run(t, map[string]scenario{
		"Creation": {"resume handlers are not called for a dropped creation", func(w *harness) {
			w.forbidWrites(30 * time.Second)
			p := w.start(onCreate("a", fails(9, temporaryError{time.Second})))
			_, _ = p.pass()
			w.calls()
			otherOperator{w}.closeCause("two")
			q := p.resumeAfterPause(onCreate("a", ok), onUpdate("u", ok), onResume("r", ok))
			q.settle()
			w.set("yes", "metadata", "labels", "on")
			q.settle()
			w.wantCalls("after", "1m0s update u")
		}},
		"Unfinished": {"a resume handler whose failure could not be recorded is called again", func(w *harness) {
			w.start(onCreate("a", ok)).settle()
			w.calls()
			p := w.start(onResume("r", patches("big", "spec", "size")))
			p.memory.Initial = true
			w.schema = onlyNumbers
			n := 0
			w.before = func(write) error {
				if n++; n == 1 || n == 4 { // the resume, and its failure after two refusals
					return memapi.NewRefusal(403)
				}
				return nil
			}
			_, _ = p.pass()
			_, _ = p.pass()
			w.wantWrites("before", "main 200", "main 403", "main 422", "main 422", "main 403")
			w.wantCalls("before", "0s resume r")
			otherOperator{w}.closeCause("two")
			q := p.resumeAfterPause(onResume("r", ok))
			q.settle()
			w.wantCalls("after", "1m0s resume r")
		}},
		"Refused": {"a resume handler whose changes are refused late is called again", func(w *harness) {
			w.start(onCreate("a", ok)).settle()
			w.calls()
			p := w.start(onResume("r", patches("big", "spec", "size"), retries(2)))
			p.memory.Initial = true
			w.schema = onlyNumbers
			w.forbidWrites(time.Second)
			p.settle()
			w.wantCalls("all", "0s resume r", "1m1s resume r")
		}},
	})
}
