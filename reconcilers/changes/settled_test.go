package changes_test

import (
	"errors"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/requirements"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// sees is a filter of which is known what it looks at.
func sees(path ...string) option {
	return func(h *handlers.Handler) {
		when(always)(h)
		h.Words.Filters = append(h.Words.Filters, requirements.Criterion{Path: diff.Path(path)})
	}
}

func always(*cause.Cause) bool { return true }

// ofField is a handler of the field, while that is there.
func ofField(h *handlers.Handler) { h.Field = diff.Path{"spec", "field"} }

// wantSettled makes a pass, and expects that it tells whether its object needs no other one. That nothing is to be done
// then is looked at after any pass: see process.over.
func (p *process) wantSettled(when string, want bool) {
	p.t.Helper()
	next, err := p.pass()
	if err != nil || next.Settled != want {
		p.t.Errorf("%s: settled is %v, want %v; error %v", when, next.Settled, want, err)
	}
}

func TestSettled(t *testing.T) {
	alone := func(want bool, handlers ...*handlers.Handler) func(w *world) {
		return func(w *world) { w.start(handlers...).wantSettled("the creation", want) }
	}
	status := patches("up", "status", "phase")
	run(t, map[string]scenario{
		"Closed": {"what ends a cause is our own memory", alone(true, onCreate("c", ok))},
		"Held": {"so is the finalizer, which comes first", alone(
			true, onCreate("c", ok), onDelete("d", ok),
		)},
		"Nobody":             {"nothing was to be done", alone(true, onCreate("c", ok, never))},
		"Result":             {"nobody looks at the status", alone(true, onCreate("c", returns("x")))},
		"Status":             {"nor for its generation", alone(true, onCreate("c", status))},
		"StatusSeenByFilter": {"it may be of interest now", alone(false, onCreate("c", status, sees("status")))},
		"StatusOfObjectSeen": {"a function may look anywhere", alone(false, onCreate("c", status, sees()))},
		"ObjectSeen":         {"our memory is none of its business", alone(true, onCreate("c", ok, sees()))},
		"LabelSeen": {
			"the status is no label", alone(true, onCreate("c", status, sees("metadata", "labels"))),
		},
		"GenerationSeen": {
			"it may grow by the status", alone(false, onCreate("c", status, sees("metadata", "generation"))),
		},
		"FilterUnknown": {"it may ask whether the object is new", alone(false, onCreate("c", ok, when(always)))},
		"ChangeSeen": {"it is a change no more", alone(false, onCreate("c", ok, sees(), func(h *handlers.Handler) {
			h.Words.Filters[0].OfChange = true
		}))},
		"Edited": {"the handler's own change follows as an update", func(w *world) {
			p := w.start(onCreate("c", patches("two", "spec", "field")), onUpdate("u", ok))
			p.wantSettled("the creation", false)
			p.wantSettled("the update", true)
			w.wantCalls("both", "0s create c", "0s update u")
		}},
		"Labelled": {"filters may ask for labels", alone(
			false, onCreate("c", patches("x", "metadata", "labels", "l")),
		)},
		"Annotated": {"and for annotations", alone(false, onCreate("c", patches("x", "metadata", "annotations", "a")))},
		"FieldLeft": {"nobody wants the object any more", func(w *world) {
			p := w.start(onUpdate("u", ok, ofField), onDelete("d", ok, ofField))
			p.settle()
			w.set(nil, "spec", "field")
			w.set("yes", "spec", "other")
			p.wantSettled("the update", false)
			p.settle()
			w.wantAt("in the end", nil, "metadata", "finalizers")
		}},
		"FieldKept": {"it is wanted as before", func(w *world) {
			p := w.start(onUpdate("u", ok, ofField))
			p.settle()
			w.set("two", "spec", "field")
			p.wantSettled("the update", true)
		}},
		"Delayed": {"a retry is to come", func(w *world) {
			p := w.start(onCreate("c", fails(1, temporaryError{delay: time.Minute})))
			p.wantSettled("the first attempt", false)
			time.Sleep(time.Minute)
			p.wantSettled("the second one", true)
		}},
		"Deleting": {"others hold it, and nobody is in a hurry", func(w *world) {
			p := w.start(onCreate("c", ok), onDelete("d", ok))
			p.settle()
			w.edit(func(body map[string]any) {
				put(body, []any{finalizer, "other.org/f"}, "metadata", "finalizers")
			})
			w.delete()
			p.wantSettled("the deletion", false)
		}},
		"Exiting": {"nobody has looked", func(w *world) {
			p := w.start(onCreate("c", ok))
			p.exit()
			p.wantSettled("the exit", false)
		}},
		"Refused": {"the write is to be done again", func(w *world) {
			p := w.start(onCreate("c", ok))
			w.before = func(write) error { return memapi.Refusal(500) }
			if next, err := p.pass(); err == nil || next.Settled {
				p.t.Errorf("settled without a write: %v, %v", next, err)
			}
		}},
		"SeenDifferently": {"the others follow with an update", func(w *world) {
			later := temporaryError{delay: time.Second}
			p := w.start(onCreate("a", ok), onCreate("b", fails(1, later)), onUpdate("u", ok))
			p.wantSettled("a has succeeded", false)
			w.set("two", "spec", "field")
			time.Sleep(time.Second)
			p.wantSettled("b has seen another one", false)
			p.wantSettled("the update", true)
			w.wantCalls("all", "0s create a", "0s create b", "1s create b", "1s update u")
		}},
	})
}

// What others do between our look and our write is in the answer.
func TestSettledBesideOthers(t *testing.T) {
	errNever := errors.New("never")
	others := func(edit func(w *world), settled bool) func(w *world) {
		return func(w *world) {
			done := false
			w.before = func(write) error {
				if !done {
					done = true
					edit(w)
				}
				return nil
			}
			w.start(onCreate("c", ok), onUpdate("u", ok)).wantSettled("the creation", settled)
		}
	}
	mutated := func(mutate func(body map[string]any)) func(w *world) {
		return func(w *world) {
			w.webhook = mutate
			w.start(onCreate("c", ok), onUpdate("u", ok)).wantSettled("the creation", false)
		}
	}
	run(t, map[string]scenario{
		"Essence": {"it is an update", others(func(w *world) { w.set("two", "spec", "field") }, false)},
		"Label":   {"filters ask for labels", others(func(w *world) { w.set("x", "metadata", "labels", "l") }, false)},
		"Finalizers": {"somebody has removed or added them", others(func(w *world) {
			w.set([]any{"other.org/f"}, "metadata", "finalizers")
		}, false)},
		"Owner": {"it is of no interest, but seldom", others(func(w *world) {
			w.set([]any{owner("o")}, "metadata", "ownerReferences")
		}, false)},
		"Status": {"nobody looks at it", others(func(w *world) { w.set("up", "status", "phase") }, true)},
		"Record": {"somebody else writes our memory", others(func(w *world) {
			w.set("{}", "metadata", "annotations", prefix+"/other")
		}, false)},
		"EssenceByWebhook": {"the answer is what counts", mutated(func(body map[string]any) {
			put(body, "no", "spec", "field")
		})},
		"MemoryByWebhook": {"what was stored is not what is there", mutated(func(body map[string]any) {
			if at(body, "metadata", "annotations", handled) != nil {
				put(body, `{"spec":{"field":"other"}}`, "metadata", "annotations", handled)
			}
		})},
		"BindingByWebhook": {"nor is what is missing", mutated(func(body map[string]any) {
			put(body, nil, "metadata", "annotations", boundTo)
		})},
		"Unwritten": {"a pass that has written nothing settles what it has looked at", func(w *world) {
			p := w.start(onCreate("c", fails(1, errNever), mode(handlers.ErrorsPermanent)))
			p.wantSettled("it failed permanently", true)
			w.set("up", "status", "phase")
			p.wantSettled("nothing has changed", true)
		}},
	})
}
