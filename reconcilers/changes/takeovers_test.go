package changes_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// otherOperator is an operator with the same memory, except for the interim memory.
type otherOperator struct{ *harness }

// closeCause closes any open cause with the value as the last-handled one, as Kopf does after its last handler.
func (o otherOperator) closeCause(value string) {
	o.edit(func(body map[string]any) {
		annotations, _ := at(body, "metadata", "annotations").(map[string]any)
		for key := range annotations {
			switch key {
			case handledAnnotation, interimAnnotation, boundToAnnotation, prefix + "/kopf-managed":
			default:
				delete(annotations, key)
			}
		}
		put(body, value, "spec", "field")
		put(body, fmt.Sprintf(`{"spec":{"field":%q}}`+"\n", value), "metadata", "annotations", handledAnnotation)
	})
}

// openUpdate opens an update to the value in which one handler has succeeded before the operator stopped.
func (o otherOperator) openUpdate(value, id string) {
	o.edit(func(body map[string]any) {
		put(body, value, "spec", "field")
		at := time.Now().UTC().Format("2006-01-02T15:04:05.000000") + "+00:00"
		put(body, fmt.Sprintf(
			`{"started":%q,"stopped":%q,"purpose":"update","retries":1,"success":true,"failure":false}`, at, at,
		),
			"metadata", "annotations", prefix+"/"+id)
	})
}

// panickingTouch is a storage of a user whose Touch panics.
type panickingTouch struct{ progress.Storage }

func (panickingTouch) Touch(_, _ map[string]any, _ *string) { panic("no touching") }

// recordDifferences returns handlers that record the old and the new value.
func recordDifferences(into *[]string, ids ...string) (all []*handlers.Handler) {
	for _, id := range ids {
		all = append(all, onUpdate(id, func(_ context.Context, c *handlers.Invocation) error {
			*into = append(
				*into, fmt.Sprintf("%s %v→%v", id, at(c.Cause.Old, "spec", "field"), at(c.Cause.New, "spec", "field")),
			)
			return nil
		}))
	}
	return all
}

// interruptUpdate returns the state after an update from one to two during which the operator was killed: u has seen
// two, v has not.
func interruptUpdate(w *harness) otherOperator {
	p := w.start(onUpdate("u", ok), onUpdate("v", fails(9, temporaryError{10 * time.Second})))
	p.settle()
	w.set("two", "spec", "field")
	_, _ = p.pass()
	p.kill()
	w.want("interim", "two", at(w.annotation(interimAnnotation), "spec", "field"))
	advanceTime(time.Minute)
	w.calls()
	w.drainWrites()
	return otherOperator{w}
}

// runNextLife runs the next life of the operator until it is idle, and returns the differences that its handlers got.
func runNextLife(w *harness) (told []string) {
	w.drainWrites()
	p := w.start(recordDifferences(&told, "u", "v")...)
	p.memory.Initial = true
	p.settle()
	return told
}

// TestTakeovers shows that the interim memory of an open change is ignored if another operator with the same memory
// continues meanwhile.
func TestTakeovers(t *testing.T) {
	run(t, map[string]scenario{
		"Ended": {"a change that another operator has ended, followed by another one, needs no call and no write",
			func(w *harness) {
				interruptUpdate(w).closeCause("two")
				otherOperator{w}.closeCause("three")
				w.want("calls", []string(nil), runNextLife(w))
				w.wantWrites("next life")
				w.wantHandled("next life", "three")
				w.set("four", "spec", "field")
				w.want("after the next edit", []string{"u three→four", "v three→four"}, runNextLife(w))
				w.wantClean("after the next edit")
			}},
		"Touched": {"a leftover touch annotation is removed with the next write, without a write of its " +
			"own", func(w *harness) {
			interruptUpdate(w).closeCause("two")
			w.set("2026-01-01T00:00:00+00:00", "metadata", "annotations", prefix+"/touch-dummy")
			w.want("calls", []string(nil), runNextLife(w))
			w.wantWrites("next life")
			w.set("three", "spec", "field")
			w.want("after the next edit", []string{"u two→three", "v two→three"}, runNextLife(w))
			w.want("writes", 1, len(w.drainWrites()))
			w.wantAt("afterwards", nil, "metadata", "annotations", prefix+"/touch-dummy")
		}},
		"TouchedForGood": {"a storage that cannot remove the touch annotation does not block writes", func(w *harness) {
			p := w.start(onCreate("a", fails(1, temporaryError{time.Second})))
			p.handling.Progress = panickingTouch{p.handling.Progress}
			p.step()
			w.want("logged", true, w.hasLogged("Failed to remove Kopf's touch annotation", "no touching"))
			w.logLines = nil
			p.settle()
			w.wantHandled("finally", w.at("spec", "field"))
			w.want("logged again", false, w.hasLogged("no touching"))
		}},
		"EndedCreation": {"a creation that another operator has ended needs no call", func(w *harness) {
			_, _ = w.start(onCreate("a", ok), onCreate("b", fails(9, temporaryError{time.Second}))).pass()
			otherOperator{w}.closeCause("one")
			otherOperator{w}.closeCause("two")
			w.want("calls", []string(nil), runNextLife(w))
			w.wantHandled("next life", "two")
		}},
		"EndedAndEdited": {"an edit after a takeover is an update from the other operator's state", func(w *harness) {
			interruptUpdate(w).closeCause("three")
			w.set("four", "spec", "field")
			w.want("calls", []string{"u three→four", "v three→four"}, runNextLife(w))
			w.wantHandled("all", "four")
			w.wantClean("all")
		}},
		"EndedAndBack": {"interim memory is ignored without its record, even if the same state is handled " +
			"last", func(w *harness) {
			interruptUpdate(w).closeCause("two")
			otherOperator{w}.closeCause("one")
			w.want("calls", []string(nil), runNextLife(w))
			w.wantHandled("next life", "one")
		}},
		"Begun": {"interim memory is ignored for another open change of the other " +
			"operator", func(w *harness) {
			interruptUpdate(w).closeCause("two")
			otherOperator{w}.openUpdate("three", "u")
			w.want("calls", []string{"v two→three"}, runNextLife(w))
			w.wantHandled("all", "three")
			w.wantClean("all")
		}},
		"BackAndBegun": {"interim memory is ignored for another open change from the same state", func(w *harness) {
			o := interruptUpdate(w)
			o.closeCause("two")
			o.closeCause("one")
			o.openUpdate("three", "u")
			w.want("calls", []string{"v one→three"}, runNextLife(w))
			w.wantHandled("all", "three")
			w.wantClean("all")
		}},
		"Closed": {"closed interim memory is ignored when another state is handled last",
			func(w *harness) {
				closeUpdate(w)
				otherOperator{w}.closeCause("three")
				otherOperator{w}.closeCause("four")
				w.want("calls", []string(nil), runNextLife(w))
				w.wantHandled("next life", "four")
			}},
		"ClosedAndReverted": {"closed interim memory is used while its state is handled last", func(w *harness) {
			closeUpdate(w)
			w.set("two", "spec", "field")
			w.want("calls", []string{"u three→two", "v three→two"}, runNextLife(w))
			w.wantHandled("all", "two")
			w.wantClean("all")
		}},
		"Swapped": {"interim memory of a revert is ignored when another state is handled last", func(w *harness) {
			revertUpdate(w)
			otherOperator{w}.closeCause("one")
			otherOperator{w}.closeCause("four")
			w.want("calls", []string(nil), runNextLife(w))
			w.wantHandled("next life", "four")
		}},
		"SwappedAndReverted": {"interim memory of a revert is used while its state is handled last", func(w *harness) {
			revertUpdate(w)
			w.set("two", "spec", "field")
			w.want("calls", []string{"u one→two", "v one→two"}, runNextLife(w))
			w.wantHandled("all", "two")
			w.wantClean("all")
		}},
	})
}

// closeUpdate produces the state after an update that u has seen as two and v as three; the update for u has not begun
// yet.
func closeUpdate(w *harness) {
	interruptUpdate(w)
	w.set("three", "spec", "field")
	_, _ = w.start(onUpdate("u", ok), onUpdate("v", ok)).pass()
	w.wantHandled("closed", "two")
	w.want("interim", "three", at(w.annotation(interimAnnotation), "spec", "field"))
}

// revertUpdate produces the state after the revert of an update that u had seen: the revert is stored as an update, but
// no handler has succeeded for it yet.
func revertUpdate(w *harness) {
	interruptUpdate(w)
	w.set("one", "spec", "field")
	_, _ = w.start(
		onUpdate("u", fails(9, temporaryError{time.Second})), onUpdate("v", fails(9, temporaryError{time.Second})),
	).pass()
	w.wantHandled("swapped", "two")
	w.want("interim", "one", at(w.annotation(interimAnnotation), "spec", "field"))
}

// TestUnboundMemory shows how interim memory of a former release, without a binding, is used.
func TestUnboundMemory(t *testing.T) {
	unbind := func(w *harness) {
		memory := w.annotation(interimAnnotation).(map[string]any)
		delete(memory, "$beside")
		w.set(string(encoded(memory)), "metadata", "annotations", interimAnnotation)
	}
	run(t, map[string]scenario{
		"Open": {"unbound interim memory is used beside a success", func(w *harness) {
			interruptUpdate(w)
			unbind(w)
			w.set("three", "spec", "field")
			w.want("calls", []string{"v one→three", "u two→three", "v two→three"}, runNextLife(w))
			w.wantHandled("all", "three")
			w.wantClean("all")
		}},
		"Reverted": {"unbound interim memory is used for a revert", func(w *harness) {
			interruptUpdate(w)
			unbind(w)
			w.set("one", "spec", "field")
			w.want("calls", []string{"u two→one", "v two→one"}, runNextLife(w))
			w.wantHandled("all", "one")
			w.wantClean("all")
		}},
		"Alone": {"unbound interim memory is ignored without a success", func(w *harness) {
			interruptUpdate(w).closeCause("three")
			unbind(w)
			w.want("calls", []string(nil), runNextLife(w))
			w.wantHandled("next life", "three")
		}},
		"Odd": {"interim memory with an unknown binding is ignored and removed", func(w *harness) {
			interruptUpdate(w)
			memory := w.annotation(interimAnnotation).(map[string]any)
			memory["$beside"] = "something"
			w.set(string(encoded(memory)), "metadata", "annotations", interimAnnotation)
			w.set("one", "spec", "field")
			w.want("calls", []string(nil), runNextLife(w))
			w.want("the unknown binding is stored", false, strings.Contains(string(encoded(w.stored())), "something"))
			w.wantClean("all")
		}},
	})
}
