package changes_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/test/kits/journaltest"
)

// readJournal makes the process write to a journal.
func readJournal(p *process) *journaltest.Reader {
	told := journaltest.NewReader(p.t, schema.GroupKind{Group: "example.org", Kind: "Example"})
	p.handling.Journal = told.Kind
	return told
}

// wantJournal compares the journal of the object, with @ for the annotations of the operator.
func (w *harness) wantJournal(told *journaltest.Reader, want ...string) {
	w.t.Helper()
	var got []string
	for _, line := range told.EntryLines("ns", "obj") {
		got = append(got, strings.ReplaceAll(line, "metadata.annotations."+prefix+"/", "@"))
	}
	w.want("journal", want, got)
}

// TestJournal shows the entries of the journal about changes: the detected cause, the called handlers, the skipped
// ones with the reason, dropped causes, and writes.
func TestJournal(t *testing.T) {
	later := temporaryError{delay: 10 * time.Second}
	value := func(want string) option {
		return when(func(c *cause.Cause) bool { return at(c.Body(), "spec", "field") == want })
	}
	run(t, map[string]scenario{
		"NotPicked": {"unpicked handlers are listed as not picked, and waiting ones as asleep", func(w *harness) {
			p := w.start(onCreate("a", fails(9, later)), onCreate("b", fails(9, later)), onCreate("c", ok))
			p.handling.Lifecycle = handlers.OneByOne
			told := readJournal(p)
			_, _ = p.pass()
			_, _ = p.pass()
			w.wantJournal(told,
				"look create; a; b not: Lifecycle says not picked; c not: Lifecycle says not picked",
				"call a for create, attempt 1: failed; retrying: not yet, again after 10s",
				"write @a @b @c @handled-uid @kopf-managed",
				"look create; a not: Progress says asleep, until after 10s; b; c not: Lifecycle says not picked",
				"call b for create, attempt 1: failed; retrying: not yet, again after 10s",
				"write @b",
			)
		}},
		"Nobody": {"an object without a matching handler lists a reason for each handler", func(w *harness) {
			p := w.start(onCreate("a", ok, ifNever), onDelete("d", ok, ifNever))
			told := readJournal(p)
			_, _ = p.pass()
			w.wantJournal(told, "look create; a not: Filters says filtered out; d not: Filters says filtered out")
		}},
		"Nothing": {"a pass without a cause lists no handlers", func(w *harness) {
			p := w.start(onUpdate("a", ok, ifNever), onUpdate("u", ok))
			p.settle()
			told := readJournal(p)
			_, _ = p.pass()
			w.wantJournal(told, "look noop")
		}},
		"Held": {"adding the finalizer is not a separate decision", func(w *harness) {
			p := w.start(onCreate("c", ok), onDelete("d", ok))
			told := readJournal(p)
			_, _ = p.pass()
			w.wantJournal(told,
				"write metadata.finalizers",
				"look create; c; d not: Deleted says other reason",
				"call c for create, attempt 1: succeeded",
				"write @handled-uid @kopf-managed @last-handled-configuration",
			)
		}},
		"Superseded": {"a superseded creation is noted with the deletion", func(w *harness) {
			p := w.start(onCreate("c", fails(9, later)), onDelete("d", ok))
			_, _ = p.pass()
			w.delete()
			told := readJournal(p)
			_, _ = p.pass()
			w.wantJournal(told,
				"look delete, dropped as the unfinished create is superseded by this delete; "+
					"c not: Created says other reason; d",
				"call d for delete, attempt 1: succeeded",
				"write -@c @last-handled-configuration metadata.finalizers",
			)
		}},
		"TakenBack": {"a reverted change is noted as dropped", func(w *harness) {
			p := w.start(onUpdate("u", fails(9, later)))
			p.settle()
			w.set("two", "spec", "field")
			_, _ = p.pass()
			w.set("one", "spec", "field")
			told := readJournal(p)
			_, _ = p.pass()
			w.wantJournal(told,
				"look noop, dropped as the change was reverted, or is filtered out now",
				"write -@u",
			)
		}},
		"TakenBackAfterSuccess": {"a change reverted after a success is dropped and followed by an " +
			"update", func(w *harness) {
			p := w.start(onUpdate("u", ok), onUpdate("v", fails(9, later), value("two")))
			p.settle()
			w.set("two", "spec", "field")
			_, _ = p.pass()
			w.set("one", "spec", "field")
			told := readJournal(p)
			_, _ = p.pass()
			w.wantJournal(told,
				"look noop, dropped as the change was reverted, or is filtered out now",
				"write -@u -@v @handling-configuration @last-handled-configuration",
				"look update of spec.field; u; v not: Filters says filtered out",
				"call u for update, attempt 1: succeeded",
				"write -@handling-configuration @last-handled-configuration",
			)
		}},
		"Unwanted": {"a change that left the filters is noted as dropped", func(w *harness) {
			w.set("yes", "metadata", "labels", "on")
			p := w.start(onCreate("c", fails(9, later), ifLabelled))
			_, _ = p.pass()
			w.set("no", "metadata", "labels", "on")
			told := readJournal(p)
			_, _ = p.pass()
			w.wantJournal(told,
				"look create, dropped as the change was reverted, or is filtered out now; "+
					"c not: Filters says filtered out",
				"write -@c",
			)
		}},
		"Exiting": {"a pass during the exit lists no handlers", func(w *harness) {
			p := w.start(onCreate("c", ok))
			told := readJournal(p)
			p.exit()
			_, _ = p.pass()
			w.wantJournal(told, "look create")
		}},
		"Refused": {"a failed write is noted with its error", func(w *harness) {
			p := w.start(onCreate("c", ok))
			told := readJournal(p)
			w.before = func(write) error { return memapi.NewRefusal(http.StatusForbidden) }
			_, _ = p.pass()
			w.wantJournal(told,
				"look create; c",
				"call c for create, attempt 1: succeeded",
				"write @handled-uid @kopf-managed @last-handled-configuration: "+
					"patching example.org/v1 Example ns/obj: Forbidden",
			)
		}},
	})
}
