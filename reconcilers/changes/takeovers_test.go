package changes_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// other is an operator of the same memory that knows nothing of the interim one.
type other struct{ *world }

// ends closes whatever is open, with the value as the one handled last: as Kopf does after its last handler.
func (o other) ends(value string) {
	o.edit(func(body map[string]any) {
		annotations, _ := at(body, "metadata", "annotations").(map[string]any)
		for key := range annotations {
			switch key {
			case handled, interim, boundTo, prefix + "/kopf-managed":
			default:
				delete(annotations, key)
			}
		}
		put(body, value, "spec", "field")
		put(body, fmt.Sprintf(`{"spec":{"field":%q}}`+"\n", value), "metadata", "annotations", handled)
	})
}

// begins opens an update to the value, in which one handler has succeeded, and then is no more.
func (o other) begins(value, id string) {
	o.edit(func(body map[string]any) {
		put(body, value, "spec", "field")
		at := time.Now().UTC().Format("2006-01-02T15:04:05.000000") + "+00:00"
		put(body, fmt.Sprintf(
			`{"started":%q,"stopped":%q,"purpose":"update","retries":1,"success":true,"failure":false}`, at, at,
		),
			"metadata", "annotations", prefix+"/"+id)
	})
}

// untouchable is a storage of somebody who thought that it would never be asked for that.
type untouchable struct{ progress.Storage }

func (untouchable) Touch(_, _ map[string]any, _ *string) { panic("no touching") }

// differences are handlers that note what they are told of.
func differences(into *[]string, ids ...string) (all []*handlers.Handler) {
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

// began is the world after an update from one to two in whose middle the operator was killed: u has seen it, v has not.
func began(w *world) other {
	p := w.start(onUpdate("u", ok), onUpdate("v", fails(9, temporaryError{10 * time.Second})))
	p.settle()
	w.set("two", "spec", "field")
	_, _ = p.pass()
	p.kill()
	w.want("interim", "two", at(w.annotation(interim), "spec", "field"))
	after(time.Minute)
	w.calls()
	w.drainWrites()
	return other{w}
}

// next is the next life of the operator, until nothing is left to do; it tells what its handlers were told.
func next(w *world) (told []string) {
	w.drainWrites()
	p := w.start(differences(&told, "u", "v")...)
	p.memory.Initial = true
	p.settle()
	return told
}

// TestTakeovers is about another operator, of the same memory, that goes on while ours is away. What ours remembers of
// an open change is good for nothing then.
func TestTakeovers(t *testing.T) {
	run(t, map[string]scenario{
		"Ended": {"the other has ended the change and handled another one: nothing is left to do, nor to be written",
			func(w *world) {
				began(w).ends("two")
				other{w}.ends("three")
				w.want("told", []string(nil), next(w))
				w.wantWrites("life after")
				w.wantHandled("life after", "three")
				w.set("four", "spec", "field")
				w.want("told of the next edit", []string{"u three→four", "v three→four"}, next(w))
				w.wantClean("what is not believed goes with the next write")
			}},
		"Touched": {"the other was stopped when it had just woken itself up: the mark goes with the next write, and " +
			"is worth none of its own", func(w *world) {
			began(w).ends("two")
			w.set("2026-01-01T00:00:00+00:00", "metadata", "annotations", prefix+"/touch-dummy")
			w.want("told", []string(nil), next(w))
			w.wantWrites("life after")
			w.set("three", "spec", "field")
			w.want("told of the next edit", []string{"u two→three", "v two→three"}, next(w))
			w.want("writes", 1, len(w.drainWrites()))
			w.wantAt("afterwards", nil, "metadata", "annotations", prefix+"/touch-dummy")
		}},
		"TouchedForGood": {"a storage that cannot remove the mark keeps nothing from being written", func(w *world) {
			p := w.start(onCreate("a", fails(1, temporaryError{time.Second})))
			p.handling.Progress = untouchable{p.handling.Progress}
			p.step()
			w.want("told", true, w.hasLogged("Failed to remove Kopf's touch annotation", "no touching"))
			w.logged = nil
			p.settle()
			w.wantHandled("in the end", w.at("spec", "field"))
			w.want("told again", false, w.hasLogged("no touching"))
		}},
		"EndedCreation": {"so it is with a creation", func(w *world) {
			_, _ = w.start(onCreate("a", ok), onCreate("b", fails(9, temporaryError{time.Second}))).pass()
			other{w}.ends("one")
			other{w}.ends("two")
			w.want("told", []string(nil), next(w))
			w.wantHandled("life after", "two")
		}},
		"EndedAndEdited": {"an edit after that is an update from what the other had", func(w *world) {
			began(w).ends("three")
			w.set("four", "spec", "field")
			w.want("told", []string{"u three→four", "v three→four"}, next(w))
			w.wantHandled("all", "four")
			w.wantClean("all")
		}},
		"EndedAndBack": {"the other has ended the change, and its revert: the same is handled last, but no record " +
			"of the change stands", func(w *world) {
			began(w).ends("two")
			other{w}.ends("one")
			w.want("told", []string(nil), next(w))
			w.wantHandled("life after", "one")
		}},
		"Begun": {"the other was stopped in the middle of a change of its own: what is open there is not what was " +
			"open here", func(w *world) {
			began(w).ends("two")
			other{w}.begins("three", "u")
			w.want("told", []string{"v two→three"}, next(w))
			w.wantHandled("all", "three")
			w.wantClean("all")
		}},
		"BackAndBegun": {"so it is if that one begins where ours began", func(w *world) {
			o := began(w)
			o.ends("two")
			o.ends("one")
			o.begins("three", "u")
			w.want("told", []string{"v one→three"}, next(w))
			w.wantHandled("all", "three")
			w.wantClean("all")
		}},
		"Closed": {"what the closing write has left for a revert is good as long as that is what was handled last",
			func(w *world) {
				closed(w)
				other{w}.ends("three")
				other{w}.ends("four")
				w.want("told", []string(nil), next(w))
				w.wantHandled("life after", "four")
			}},
		"ClosedAndReverted": {"and it is good until then", func(w *world) {
			closed(w)
			w.set("two", "spec", "field")
			w.want("told", []string{"u three→two", "v three→two"}, next(w))
			w.wantHandled("all", "two")
			w.wantClean("all")
		}},
		"Swapped": {"so it is after a revert that became an update", func(w *world) {
			swapped(w)
			other{w}.ends("one")
			other{w}.ends("four")
			w.want("told", []string(nil), next(w))
			w.wantHandled("life after", "four")
		}},
		"SwappedAndReverted": {"and it is good until then", func(w *world) {
			swapped(w)
			w.set("two", "spec", "field")
			w.want("told", []string{"u one→two", "v one→two"}, next(w))
			w.wantHandled("all", "two")
			w.wantClean("all")
		}},
	})
}

// closed is the world after an update that u has seen as two, v as three, whose follow-up has not begun.
func closed(w *world) {
	began(w)
	w.set("three", "spec", "field")
	_, _ = w.start(onUpdate("u", ok), onUpdate("v", ok)).pass()
	w.wantHandled("closed", "two")
	w.want("interim", "three", at(w.annotation(interim), "spec", "field"))
}

// swapped is the world after the revert of an update that u had seen; that it is an update has been noted, nobody is
// told yet.
func swapped(w *world) {
	began(w)
	w.set("one", "spec", "field")
	_, _ = w.start(
		onUpdate("u", fails(9, temporaryError{time.Second})), onUpdate("v", fails(9, temporaryError{time.Second})),
	).pass()
	w.wantHandled("swapped", "two")
	w.want("interim", "one", at(w.annotation(interim), "spec", "field"))
}

// TestUnboundMemory is about interim memory as it was written once, without what it is valid beside.
func TestUnboundMemory(t *testing.T) {
	unbind := func(w *world) {
		memory := w.annotation(interim).(map[string]any)
		delete(memory, "$beside")
		w.set(string(encoded(memory)), "metadata", "annotations", interim)
	}
	run(t, map[string]scenario{
		"Open": {"it is believed beside a success", func(w *world) {
			began(w)
			unbind(w)
			w.set("three", "spec", "field")
			w.want("told", []string{"v one→three", "u two→three", "v two→three"}, next(w))
			w.wantHandled("all", "three")
			w.wantClean("all")
		}},
		"Reverted": {"also by a revert", func(w *world) {
			began(w)
			unbind(w)
			w.set("one", "spec", "field")
			w.want("told", []string{"u two→one", "v two→one"}, next(w))
			w.wantHandled("all", "one")
			w.wantClean("all")
		}},
		"Alone": {"it is not believed without one", func(w *world) {
			began(w).ends("three")
			unbind(w)
			w.want("told", []string(nil), next(w))
			w.wantHandled("life after", "three")
		}},
		"Odd": {"what is bound to nothing that we know is not believed", func(w *world) {
			began(w)
			memory := w.annotation(interim).(map[string]any)
			memory["$beside"] = "something"
			w.set(string(encoded(memory)), "metadata", "annotations", interim)
			w.set("one", "spec", "field")
			w.want("told", []string(nil), next(w))
			w.want("what is stored has nothing odd", false, strings.Contains(string(encoded(w.stored())), "something"))
			w.wantClean("all")
		}},
	})
}
