package changes_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal/journaltest"
)

// noting has the process tell a journal.
func noting(p *process) *journaltest.Reader {
	told := journaltest.NewReader(p.t, schema.GroupKind{Group: "example.org", Kind: "Example"})
	p.handling.Journal = told.Kind
	return told
}

// wantNoted compares what is known of the object, with @ for the annotations of the operator.
func (w *world) wantNoted(told *journaltest.Reader, want ...string) {
	w.t.Helper()
	var got []string
	for _, line := range told.Lines("ns", "obj") {
		got = append(got, strings.ReplaceAll(line, "metadata.annotations."+prefix+"/", "@"))
	}
	w.want("journal", want, got)
}

// TestJournal is about what people are told of changes: what was seen, who was called, who was not and why, what was
// given up, and what was written.
func TestJournal(t *testing.T) {
	later := temporaryError{delay: 10 * time.Second}
	value := func(want string) option {
		return when(func(c *cause.Cause) bool { return at(c.Body(), "spec", "field") == want })
	}
	run(t, map[string]scenario{
		"NotPicked": {"the lifecycle has others wait, which is no matter of those that wait anyway", func(w *world) {
			p := w.start(onCreate("a", fails(9, later)), onCreate("b", fails(9, later)), onCreate("c", ok))
			p.handling.Lifecycle = handlers.OneByOne
			told := noting(p)
			_, _ = p.pass()
			_, _ = p.pass()
			w.wantNoted(told,
				"look create; a; b not: Lifecycle says not picked; c not: Lifecycle says not picked",
				"call a for create, attempt 1: failed; retrying: not yet, again after 10s",
				"write @a @b @c @handled-uid @kopf-managed",
				"look create; a not: Progress says asleep, until after 10s; b; c not: Lifecycle says not picked",
				"call b for create, attempt 1: failed; retrying: not yet, again after 10s",
				"write @b",
			)
		}},
		"Nobody": {"without anybody who is interested, each says why", func(w *world) {
			p := w.start(onCreate("a", ok, never), onDelete("d", ok, never))
			told := noting(p)
			_, _ = p.pass()
			w.wantNoted(told, "look create; a not: Filters says filtered out; d not: Filters says filtered out")
		}},
		"Nothing": {"where nothing has happened, nobody has to say anything", func(w *world) {
			p := w.start(onUpdate("a", ok, never), onUpdate("u", ok))
			p.settle()
			told := noting(p)
			_, _ = p.pass()
			w.wantNoted(told, "look noop")
		}},
		"Held": {"to hold the object makes no second look of it", func(w *world) {
			p := w.start(onCreate("c", ok), onDelete("d", ok))
			told := noting(p)
			_, _ = p.pass()
			w.wantNoted(told,
				"write metadata.finalizers",
				"look create; c; d not: Deleted says other reason",
				"call c for create, attempt 1: succeeded",
				"write @handled-uid @kopf-managed @last-handled-configuration",
			)
		}},
		"Superseded": {"what was begun is given up for the deletion", func(w *world) {
			p := w.start(onCreate("c", fails(9, later)), onDelete("d", ok))
			_, _ = p.pass()
			w.delete()
			told := noting(p)
			_, _ = p.pass()
			w.wantNoted(told,
				"look delete, dropped as the unfinished create is superseded by this delete; "+
					"c not: Created says other reason; d",
				"call d for delete, attempt 1: succeeded",
				"write -@c @last-handled-configuration metadata.finalizers",
			)
		}},
		"TakenBack": {"a change that is not there any more is not gone on with", func(w *world) {
			p := w.start(onUpdate("u", fails(9, later)))
			p.settle()
			w.set("two", "spec", "field")
			_, _ = p.pass()
			w.set("one", "spec", "field")
			told := noting(p)
			_, _ = p.pass()
			w.wantNoted(told,
				"look noop, dropped as the change was reverted, or is filtered out now",
				"write -@u",
			)
		}},
		"TakenBackAfterSuccess": {"nor is one that others have heard of, and are told anew", func(w *world) {
			p := w.start(onUpdate("u", ok), onUpdate("v", fails(9, later), value("two")))
			p.settle()
			w.set("two", "spec", "field")
			_, _ = p.pass()
			w.set("one", "spec", "field")
			told := noting(p)
			_, _ = p.pass()
			w.wantNoted(told,
				"look noop, dropped as the change was reverted, or is filtered out now",
				"write -@u -@v @handling-configuration @last-handled-configuration",
				"look update of spec.field; u; v not: Filters says filtered out",
				"call u for update, attempt 1: succeeded",
				"write -@handling-configuration @last-handled-configuration",
			)
		}},
		"Unwanted": {"nor is one of an object that nobody wants any more", func(w *world) {
			w.set("yes", "metadata", "labels", "on")
			p := w.start(onCreate("c", fails(9, later), labelled))
			_, _ = p.pass()
			w.set("no", "metadata", "labels", "on")
			told := noting(p)
			_, _ = p.pass()
			w.wantNoted(told,
				"look create, dropped as the change was reverted, or is filtered out now; "+
					"c not: Filters says filtered out",
				"write -@c",
			)
		}},
		"Exiting": {"at the exit, nobody is asked", func(w *world) {
			p := w.start(onCreate("c", ok))
			told := noting(p)
			p.exit()
			_, _ = p.pass()
			w.wantNoted(told, "look create")
		}},
		"Refused": {"a write that fails is told", func(w *world) {
			p := w.start(onCreate("c", ok))
			told := noting(p)
			w.before = func(write) error { return memapi.Refusal(http.StatusForbidden) }
			_, _ = p.pass()
			w.wantNoted(told,
				"look create; c",
				"call c for create, attempt 1: succeeded",
				"write @handled-uid @kopf-managed @last-handled-configuration: "+
					"patching example.org/v1 Example ns/obj: Forbidden",
			)
		}},
	})
}
