package changes_test

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// forbidden is the answer to who lacks rights for the status.
var forbidden = apierrors.NewForbidden(
	schema.GroupResource{Group: "example.org", Resource: "examples"}, "obj", errors.New("no rights"),
)

// close has the kind take no conditions any more: another object's refusal may have shown that at any moment.
func (a *acceptance) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
}

// lacksConditions is a schema that does not know them.
func lacksConditions(body map[string]any) {
	if status, ok := body["status"].(map[string]any); ok {
		delete(status, "conditions")
	}
}

// TestConditionsToldAlone is about statuses that are refused, be it for what handlers have set or for the conditions:
// each is tried without the other.
func TestConditionsToldAlone(t *testing.T) {
	run(t, map[string]scenario{
		"Handlers": {"what a handler says wrongly is not to silence the engine", func(w *world) {
			w.withStatus()
			w.before = func(one write) error {
				if at(one.patch, "status", "own") != nil {
					return forbidden
				}
				return nil
			}
			p := w.tell(nil, onCreate("a", patches("x", "status", "own")))
			_, _ = p.pass()
			w.wantTold("after one pass", "True", nil, nil)
			w.wantAt("what is refused", nil, "status", "own")
			w.wantWrites("together, without, alone",
				"status 403", "main 200", "status 403", "main 200", "status 200")
			p.wantRefusals("the conditions were taken", false, "")
		}},
		"NoPlace": {"where there are no conditions, the status is not tried twice", func(w *world) {
			w.withStatus()
			w.before = func(one write) error {
				if one.status {
					return forbidden
				}
				return nil
			}
			p := w.tell(nil, onCreate("a", patches("x", "status", "own")))
			p.acceptance.close()
			p.settle()
			w.wantWrites("once", "status 403", "main 200")
		}},
		"NothingNew": {"where the conditions are right already, the status is not tried twice", func(w *world) {
			w.withStatus()
			p := w.tell(nil, onCreate("a", ok), onUpdate("u", returns("x")))
			p.settle()
			w.wantTold("told", "True", nil, nil)
			w.set("x", "metadata", "labels", "l")
			w.drainWrites()
			w.before = func(one write) error {
				if one.status {
					return forbidden
				}
				return nil
			}
			p.settle()
			w.wantWrites("once", "status 403", "main 200")
		}},
		"Closed": {"what others were refused meanwhile is not tried any more", func(w *world) {
			w.withStatus()
			p := w.tell(nil, onCreate("a", ok))
			w.before = func(one write) error {
				if one.status {
					p.acceptance.close()
					return forbidden
				}
				return nil
			}
			p.settle()
			w.wantWrites("the status once, and the rest without", "status 403", "main 200", "main 200")
			p.wantRefusals("it is known", true, "")
		}},
		"Gone": {"nobody hears of an object that has ended", func(w *world) {
			w.withStatus()
			first := true
			w.before = func(one write) error {
				switch {
				case !one.status:
					return nil
				case first:
					first = false
					return forbidden
				}
				w.delete()
				return nil
			}
			p := w.tell(nil, onCreate("a", patches("x", "status", "own")))
			p.settle()
			w.wantWrites("until it has ended", "status 403", "main 200", "status 404")
		}},
	})
}

// TestConditionsNotKept is about conditions that were taken, and are not on the object then. Where that has a reason,
// nothing is said against the kind.
func TestConditionsNotKept(t *testing.T) {
	run(t, map[string]scenario{
		"Closed": {"it was told of another object meanwhile", func(w *world) {
			w.withStatus()
			w.webhook = lacksConditions
			p := w.tell(nil, onCreate("a", ok))
			w.after = func(write) error { p.acceptance.close(); return nil }
			p.settle()
			w.wantTold("dropped", nil, nil, nil)
			p.wantRefusals("known before", true, "")
		}},
		"Released": {"nobody looks at an object that is let go", func(w *world) {
			w.withStatus()
			later := fails(9, temporaryError{delay: 10 * time.Second})
			p := w.tell(nil, onDelete("d", all(patches(nil, "metadata", "finalizers"), later)))
			p.settle()
			w.drainWrites()
			w.webhook = lacksConditions
			w.delete()
			next, err := p.pass()
			w.want("the end", []any{true, nil}, []any{next.Released, err})
			w.wantWrites("what lets it go", "status 200", "main 200")
			p.wantRefusals("it is gone", true, "")
		}},
	})
}
