package changes_test

import (
	"errors"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// sees returns a filter that declares which field it looks at.
func sees(path ...string) option {
	return func(h *handlers.Handler) {
		when(always)(h)
		h.FilterDescriptions.Filters = append(h.FilterDescriptions.Filters,
			handlers.Criterion{Path: diff.Path(path)})
	}
}

func always(*cause.Cause) bool { return true }

// ofField makes a handler match objects with the field.
func ofField(h *handlers.Handler) { h.Field = diff.Path{"spec", "field"} }

// wantSettled makes a pass and checks whether it reports the object as settled. For each settled object, process.over
// checks that another pass does nothing.
func (p *process) wantSettled(when string, want bool) {
	p.t.Helper()
	next, err := p.pass()
	if err != nil || next.Settled != want {
		p.t.Errorf("%s: settled is %v, want %v; error %v", when, next.Settled, want, err)
	}
}

func TestSettled(t *testing.T) {
	alone := func(want bool, handlers ...*handlers.Handler) func(w *harness) {
		return func(w *harness) { w.start(handlers...).wantSettled("the creation", want) }
	}
	status := patches("up", "status", "phase")
	run(t, map[string]scenario{
		"Closed": {"a pass that closes a cause settles the object", alone(true, onCreate("c", ok))},
		"Held": {"a creation settles the object even if the finalizer is added first", alone(
			true, onCreate("c", ok), onDelete("d", ok),
		)},
		"Nobody": {"an object that matches no handler is settled", alone(true, onCreate("c", ok, ifNever))},
		"Result": {"a result settles the object if no handler looks at the status",
			alone(true, onCreate("c", returns("x")))},
		"Status": {"a status patch settles the object if no handler looks at it",
			alone(true, onCreate("c", status))},
		"StatusSeenByFilter": {"a status patch needs a further pass if a filter looks at it",
			alone(false, onCreate("c", status, sees("status")))},
		"StatusOfObjectSeen": {"a status patch needs a further pass if a filter can look anywhere",
			alone(false, onCreate("c", status, sees()))},
		"ObjectSeen": {"own memory settles the object even if a filter can look anywhere",
			alone(true, onCreate("c", ok, sees()))},
		"LabelSeen": {
			"a status patch settles the object if a filter looks only at labels",
			alone(true, onCreate("c", status, sees("metadata", "labels"))),
		},
		"GenerationSeen": {
			"a status patch needs a further pass if a filter looks at the generation",
			alone(false, onCreate("c", status, sees("metadata", "generation"))),
		},
		"FilterUnknown": {"a filter without declared fields needs a further pass",
			alone(false, onCreate("c", ok, when(always)))},
		"ChangeSeen": {"a filter that looks at the change needs a further pass",
			alone(false, onCreate("c", ok, sees(), func(h *handlers.Handler) {
				h.FilterDescriptions.Filters[0].OfChange = true
			}))},
		"Edited": {"a handler's own change of the essence is handled as an update", func(w *harness) {
			p := w.start(onCreate("c", patches("two", "spec", "field")), onUpdate("u", ok))
			p.wantSettled("the creation", false)
			p.wantSettled("the update", true)
			w.wantCalls("both", "0s create c", "0s update u")
		}},
		"Labelled": {"a label patch needs a further pass, because filters can look at it", alone(
			false, onCreate("c", patches("x", "metadata", "labels", "l")),
		)},
		"Annotated": {"an annotation patch needs a further pass",
			alone(false, onCreate("c", patches("x", "metadata", "annotations", "a")))},
		"FieldLeft": {"an object without handlers needs a further pass to remove its finalizer", func(w *harness) {
			p := w.start(onUpdate("u", ok, ofField), onDelete("d", ok, ofField))
			p.settle()
			w.set(nil, "spec", "field")
			w.set("yes", "spec", "other")
			p.wantSettled("the update", false)
			p.settle()
			w.wantAt("finally", nil, "metadata", "finalizers")
		}},
		"FieldKept": {"an update that keeps the matching handlers settles the object", func(w *harness) {
			p := w.start(onUpdate("u", ok, ofField))
			p.settle()
			w.set("two", "spec", "field")
			p.wantSettled("the update", true)
		}},
		"Delayed": {"a waiting retry needs a further pass", func(w *harness) {
			p := w.start(onCreate("c", fails(1, temporaryError{delay: time.Minute})))
			p.wantSettled("the first attempt", false)
			time.Sleep(time.Minute)
			p.wantSettled("the second attempt", true)
		}},
		"Deleting": {"an object that others hold after its deletion is not settled", func(w *harness) {
			p := w.start(onCreate("c", ok), onDelete("d", ok))
			p.settle()
			w.edit(func(body map[string]any) {
				put(body, []any{finalizer, "other.org/f"}, "metadata", "finalizers")
			})
			w.delete()
			p.wantSettled("the deletion", false)
		}},
		"Exiting": {"a pass that the exit prevents does not settle the object", func(w *harness) {
			p := w.start(onCreate("c", ok))
			p.exit()
			p.wantSettled("the exit", false)
		}},
		"Refused": {"a failed write does not settle the object", func(w *harness) {
			p := w.start(onCreate("c", ok))
			w.before = func(write) error { return memapi.NewRefusal(500) }
			if next, err := p.pass(); err == nil || next.Settled {
				p.t.Errorf("want an error without settling, got %v, %v", next, err)
			}
		}},
		"SeenDifferently": {"handlers that saw different states need a further pass for the update", func(w *harness) {
			later := temporaryError{delay: time.Second}
			p := w.start(onCreate("a", ok), onCreate("b", fails(1, later)), onUpdate("u", ok))
			p.wantSettled("a has succeeded", false)
			w.set("two", "spec", "field")
			time.Sleep(time.Second)
			p.wantSettled("b has seen the edit", false)
			p.wantSettled("the update", true)
			w.wantCalls("all", "0s create a", "0s create b", "1s create b", "1s update u")
		}},
	})
}

// TestSettledBesideOthers shows that a pass notices edits of other clients between its read and its write in the
// answer to the write.
func TestSettledBesideOthers(t *testing.T) {
	errNever := errors.New("never")
	others := func(edit func(w *harness), settled bool) func(w *harness) {
		return func(w *harness) {
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
	mutated := func(mutate func(body map[string]any)) func(w *harness) {
		return func(w *harness) {
			w.webhook = mutate
			w.start(onCreate("c", ok), onUpdate("u", ok)).wantSettled("the creation", false)
		}
	}
	run(t, map[string]scenario{
		"Essence": {"an edit of the essence needs a further pass",
			others(func(w *harness) { w.set("two", "spec", "field") }, false)},
		"Label": {"an edit of labels needs a further pass",
			others(func(w *harness) { w.set("x", "metadata", "labels", "l") }, false)},
		"Finalizers": {"an edit of finalizers needs a further pass", others(func(w *harness) {
			w.set([]any{"other.org/f"}, "metadata", "finalizers")
		}, false)},
		"Owner": {"an edit of owner references needs a further pass", others(func(w *harness) {
			w.set([]any{owner("o")}, "metadata", "ownerReferences")
		}, false)},
		"Status": {"an edit of the status keeps the object settled",
			others(func(w *harness) { w.set("up", "status", "phase") }, true)},
		"Record": {"an edit of the annotations of the engine needs a further pass", others(func(w *harness) {
			w.set("{}", "metadata", "annotations", prefix+"/other")
		}, false)},
		"EssenceByWebhook": {"an essence that a webhook changes needs a further pass",
			mutated(func(body map[string]any) {
				put(body, "no", "spec", "field")
			})},
		"MemoryByWebhook": {"memory that a webhook changes needs a further pass", mutated(func(body map[string]any) {
			if at(body, "metadata", "annotations", handledAnnotation) != nil {
				put(body, `{"spec":{"field":"other"}}`, "metadata", "annotations", handledAnnotation)
			}
		})},
		"BindingByWebhook": {"a binding that a webhook removes needs a further pass",
			mutated(func(body map[string]any) {
				put(body, nil, "metadata", "annotations", boundToAnnotation)
			})},
		"Unwritten": {"a pass without a write settles the state that it has read", func(w *harness) {
			p := w.start(onCreate("c", fails(1, errNever), mode(handlers.ErrorsPermanent)))
			p.wantSettled("it failed permanently", true)
			w.set("up", "status", "phase")
			p.wantSettled("nothing has changed", true)
		}},
	})
}
