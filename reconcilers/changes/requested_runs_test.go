package changes_test

import (
	"context"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

const (
	handleNow  = prefix + "/handle-now"
	handledNow = prefix + "/handled-now"
	pausedKey  = prefix + "/paused"
)

// annotate sets an annotation, or removes it without a value.
func (w *harness) annotate(key, value string) {
	w.edit(func(body map[string]any) {
		if value == "" {
			put(body, nil, "metadata", "annotations", key)
			return
		}
		put(body, value, "metadata", "annotations", key)
	})
}

// wantAnswer compares the answer to the last request.
func (w *harness) wantAnswer(when string, want any) {
	w.t.Helper()
	w.wantAt(when, want, "metadata", "annotations", handledNow)
}

// TestRequestedRuns shows that a request runs the handlers of an object again, once, and is answered.
func TestRequestedRuns(t *testing.T) {
	later := temporaryError{delay: 10 * time.Second}
	run(t, map[string]scenario{
		"All": {"all handles the object as a new one, with one write", func(w *harness) {
			p := w.start(onCreate("c", ok), onUpdate("u", ok), on("", "any", ok))
			p.settle()
			w.calls()
			w.drainWrites()
			w.annotate(handleNow, "all:1")
			p.settle()
			w.wantCalls("the request", "0s create c", "0s create any")
			w.wantWrites("the request", "main 200")
			w.wantAnswer("the request", "all:1")
			w.annotate(handleNow, "all:2")
			p.settle()
			w.wantCalls("another token", "0s create c", "0s create any")
			w.wantAnswer("another token", "all:2")
			p.settle()
			w.wantCalls("an answered request")
		}},
		"Retried": {"a requested run is retried with its records, and answered at its end", func(w *harness) {
			p := w.start(onCreate("a", ok), onCreate("b", ok))
			p.settle()
			w.calls()
			p.kill()
			w.annotate(handleNow, "all:1")
			p = w.start(onCreate("a", ok), onCreate("b", fails(2, later)))
			_, _ = p.pass()
			w.wantAnswer("between two attempts", "started all:1")
			p.kill()
			p = w.start(onCreate("a", ok), onCreate("b", fails(1, later)))
			p.settle()
			w.wantCalls("over a restart", "0s create a", "0s create b", "10s create b", "20s create b")
			w.wantAnswer("at the end", "all:1")
			w.wantHandled("at the end", "one")
		}},
		"Failed": {"failed calls the failed handlers alone, with the reason of their failure", func(w *harness) {
			p := w.start(onCreate("c", ok), onUpdate("u", ok), onUpdate("bad", fails(1, permanentError{})))
			p.settle()
			w.set("two", "spec", "field")
			p.settle()
			w.calls()
			w.drainWrites()
			w.want("the list", "update", at(w.annotation(failedAnnotation), "bad", "reason"))
			w.annotate(handleNow, "failed:1")
			p.settle()
			w.wantCalls("the request", "0s update bad")
			w.wantWrites("the request", "main 200")
			w.wantAnswer("the request", "failed:1")
			w.want("after the success", nil, w.annotation(failedAnnotation))
		}},
		"FailedAgain": {"a handler that fails again stays in the list", func(w *harness) {
			p := w.start(onCreate("bad", fails(2, permanentError{})))
			p.settle()
			w.annotate(handleNow, "failed:1")
			p.settle()
			w.want("the list", "never", at(w.annotation(failedAnnotation), "bad", "message"))
			w.annotate(handleNow, "failed:2")
			p.settle()
			w.want("after the success", nil, w.annotation(failedAnnotation))
			w.wantCalls("all", "0s create bad", "0s create bad", "0s create bad")
		}},
		"NothingFailed": {"failed without a failure calls nothing, and is answered", func(w *harness) {
			p := w.start(onCreate("c", ok), onResume("r", ok))
			p.settle()
			w.calls()
			w.drainWrites()
			w.annotate(handleNow, "failed:1")
			p.settle()
			w.wantCalls("the request")
			w.wantWrites("the request", "main 200")
			w.wantAnswer("the request", "failed:1")
		}},
		"Waiting": {"failed calls a handler at once that waits for its next attempt", func(w *harness) {
			p := w.start(onCreate("a", ok), onCreate("b", fails(1, temporaryError{delay: time.Hour})))
			_, _ = p.pass()
			w.annotate(handleNow, "failed:1")
			p.settle()
			w.wantCalls("all", "0s create a", "0s create b", "0s create b")
			w.wantAnswer("all", "failed:1")
		}},
		"Unfinished": {"all begins an unfinished creation again", func(w *harness) {
			p := w.start(onCreate("a", ok), onCreate("b", fails(1, temporaryError{delay: time.Hour})))
			_, _ = p.pass()
			w.annotate(handleNow, "all:1")
			p.settle()
			w.wantCalls("all", "0s create a", "0s create b", "0s create a", "0s create b")
			w.wantHandled("all", "one")
		}},
		"Superseded": {"a token that changes during a run calls the handlers again", func(w *harness) {
			p := w.start(onCreate("a", ok), onCreate("b", ok))
			p.settle()
			p = w.start(onCreate("a", func(context.Context, *handlers.Invocation) error {
				if w.at("metadata", "annotations", handleNow) == "all:1" {
					w.annotate(handleNow, "all:2")
				}
				return nil
			}), onCreate("b", ok))
			w.calls()
			w.annotate(handleNow, "all:1")
			p.settle()
			w.wantCalls("all", "0s create a", "0s create b", "0s create a", "0s create b")
			w.wantAnswer("all", "all:2")
		}},
		"SupersededBetween": {"a token that changes between two attempts begins a new run", func(w *harness) {
			w.start(onCreate("a", ok), onCreate("b", ok)).settle()
			p := w.start(onCreate("a", ok), onCreate("b", fails(1, later)))
			w.annotate(handleNow, "all:1")
			_, _ = p.pass()
			w.annotate(handleNow, "all:2")
			w.calls()
			p.settle()
			w.wantCalls("the second run", "0s create a", "0s create b")
			w.wantAnswer("all", "all:2")
		}},
		"Removed": {"without the annotation, the run ends before its next attempt", func(w *harness) {
			w.start(onCreate("a", ok)).settle()
			p := w.start(onCreate("a", fails(9, later)))
			w.annotate(handleNow, "all:1")
			_, _ = p.pass()
			w.annotate(handleNow, "")
			w.calls()
			p.settle()
			w.wantCalls("after the removal")
			w.wantClean("after the removal")
		}},
		"Edited": {"an edit during a run follows as an update", func(w *harness) {
			w.start(onCreate("a", ok), onUpdate("u", ok)).settle()
			p := w.start(onCreate("a", fails(1, later)), onUpdate("u", ok))
			w.annotate(handleNow, "all:1")
			_, _ = p.pass()
			w.set("two", "spec", "field")
			w.calls()
			p.settle()
			w.wantCalls("all", "10s create a", "10s update u")
			w.wantAnswer("all", "all:1")
			w.wantHandled("all", "two")
		}},
		"Resumed": {"a restart during a request calls the resume handlers as well", func(w *harness) {
			w.start(onCreate("bad", fails(1, permanentError{})), onResume("r", ok)).settle()
			w.annotate(handleNow, "failed:1")
			p := w.start(onCreate("bad", ok), onResume("r", ok))
			p.memory.Initial = true
			w.calls()
			p.settle()
			w.wantCalls("all", "0s create bad", "0s resume r")
			w.wantAnswer("all", "failed:1")
		}},
		"ResumeKeepsFailures": {"a resume keeps the failures of handlers that it does not call", func(w *harness) {
			w.start(onCreate("bad", fails(1, permanentError{})), onResume("r", ok)).settle()
			p := w.start(onCreate("bad", ok), onResume("r", ok))
			p.memory.Initial = true
			w.drainWrites()
			p.settle()
			w.wantWrites("the resume")
			w.want("the list", "create", at(w.annotation(failedAnnotation), "bad", "reason"))
		}},
		"UpdateEndsFailures": {"a later change replaces the failures of the change before", func(w *harness) {
			p := w.start(onCreate("bad", fails(1, permanentError{})), onUpdate("u", ok))
			p.settle()
			w.want("the list", "create", at(w.annotation(failedAnnotation), "bad", "reason"))
			w.set("two", "spec", "field")
			p.settle()
			w.want("after the update", nil, w.annotation(failedAnnotation))
		}},
		"Deletion": {"a deletion that failed is tried again, without an edit", func(w *harness) {
			holding := onDelete("d", fails(1, permanentError{}))
			holding.HoldOnFailure = true
			p := w.start(holding)
			p.settle()
			w.delete()
			p.settle()
			w.wantCalls("the deletion", "0s delete d")
			w.annotate(handleNow, "failed:1")
			p.settle()
			w.wantCalls("the request", "0s delete d")
			w.want("gone", true, p.gone)
		}},
		"AnswerRemoved": {"a client that removes the answer does not have the handlers called again", func(w *harness) {
			p := w.start(onCreate("c", ok))
			p.settle()
			w.annotate(handleNow, "all:1")
			p.settle()
			w.calls()
			w.annotate(handledNow, "")
			p.settle()
			w.wantCalls("without the answer")
		}},
		"Unknown": {"an unknown mode has no effect, and is logged once", func(w *harness) {
			p := w.start(onCreate("c", ok))
			p.settle()
			w.calls()
			w.drainWrites()
			for _, value := range []string{"all", "some:1", "failed:", ":", "all 1"} {
				w.annotate(handleNow, value)
				p.settle()
				p.settle()
				w.want("the lines about "+value, true, w.hasLogged("Ignoring an annotation", value))
			}
			w.want("the number of lines", 5, len(w.linesWith("Ignoring an annotation")))
			w.wantCalls("unknown modes")
			w.wantWrites("unknown modes")
		}},
		"Forged": {"a malformed list of failures blocks nothing", func(w *harness) {
			p := w.start(onCreate("c", ok))
			p.settle()
			w.calls()
			for n, value := range []string{"{", "[]", `{"c":1}`, `{"other":{"reason":"create"}}`} {
				w.annotate(failedAnnotation, value)
				w.annotate(handleNow, "failed:"+string(rune('a'+n)))
				p.settle()
				w.wantAnswer(value, "failed:"+string(rune('a'+n)))
			}
			w.wantCalls("forged lists")
		}},
	})
}

// TestPausedObjects shows that a paused object is left alone, and that an unfinished change continues after the pause.
func TestPausedObjects(t *testing.T) {
	run(t, map[string]scenario{
		"Paused": {"no handler of a paused object is called, and nothing is written", func(w *harness) {
			w.annotate(pausedKey, "true")
			p := w.start(onCreate("c", ok), onUpdate("u", ok), onDelete("d", ok))
			p.settle()
			w.wantCalls("paused")
			w.wantWrites("paused")
			w.annotate(pausedKey, "")
			p.settle()
			w.wantCalls("after the pause", "0s create c")
			w.annotate(pausedKey, "true")
			w.set("two", "spec", "field")
			p.settle()
			w.wantCalls("paused again")
			w.annotate(pausedKey, "")
			p.settle()
			w.wantCalls("after the second pause", "0s update u")
			w.want("log lines", 2, len(w.linesWith("is paused by its annotation")))
		}},
		"NoUpdate": {"the annotation alone is not an update", func(w *harness) {
			w.annotate(pausedKey, "false")
			p := w.start(onCreate("c", ok), onUpdate("u", ok))
			p.settle()
			w.annotate(pausedKey, "")
			p.settle()
			w.wantCalls("all", "0s create c")
		}},
		"Retried": {"an attempt that is due in a pause is made after it", func(w *harness) {
			p := w.start(onCreate("c", fails(1, temporaryError{delay: time.Minute})))
			_, _ = p.pass()
			w.annotate(pausedKey, "true")
			p.settle()
			time.Sleep(time.Hour)
			p.settle()
			w.annotate(pausedKey, "")
			p.settle()
			w.wantCalls("all", "0s create c", "1h0m0s create c")
		}},
		"Deleted": {"the deletion of a paused object is handled", func(w *harness) {
			p := w.start(onDelete("d", ok))
			p.settle()
			w.annotate(pausedKey, "true")
			p.settle()
			w.delete()
			p.settle()
			w.wantCalls("all", "0s delete d")
			w.want("gone", true, p.gone)
		}},
		"DeletionPaused": {"the deletion waits if the pause covers it", func(w *harness) {
			p := w.start(onDelete("d", ok))
			p.settle()
			w.annotate(pausedKey, "deletion")
			w.delete()
			p.settle()
			w.wantCalls("in the pause")
			w.annotate(pausedKey, "")
			p.settle()
			w.wantCalls("after it", "0s delete d")
			w.want("gone", true, p.gone)
		}},
		"MidPass": {"a pause that a write of the pass reveals stops the handlers that follow", func(w *harness) {
			p := w.start(onCreate("a", all(patches("x", "spec", "other"), takes(2*time.Second))),
				onCreate("b", func(ctx context.Context, c *handlers.Invocation) error {
					w.annotate(pausedKey, "true")
					return takes(3*time.Second)(ctx, c)
				}), onCreate("c", ok))
			p.settle()
			w.wantCalls("before the pause", "0s create a", "2s create b")
			w.annotate(pausedKey, "")
			p.settle()
			w.wantCalls("after the pause", "5s create c")
		}},
		"Request": {"a request waits for the end of the pause", func(w *harness) {
			p := w.start(onCreate("c", ok))
			p.settle()
			w.annotate(pausedKey, "true")
			w.annotate(handleNow, "all:1")
			p.settle()
			w.annotate(pausedKey, "")
			p.settle()
			w.wantCalls("all", "0s create c", "0s create c")
		}},
		"Unknown": {"an unknown value does not pause, and is logged once", func(w *harness) {
			w.annotate(pausedKey, "yes")
			p := w.start(onCreate("c", ok))
			p.settle()
			p.settle()
			w.wantCalls("all", "0s create c")
			w.want("log lines", 1, len(w.linesWith("Ignoring an annotation", "yes")))
		}},
	})
}
