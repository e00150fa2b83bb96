package changes_test

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// errForbidden is the error of a client without rights for the status.
var errForbidden = apierrors.NewForbidden(
	schema.GroupResource{Group: "example.org", Resource: "examples"}, "obj", errors.New("no rights"),
)

// close makes the kind refuse further conditions, as the refusal for another object can do at any moment.
func (a *acceptance) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
}

// lacksConditions is a schema that drops the conditions.
func lacksConditions(body map[string]any) {
	if status, ok := body["status"].(map[string]any); ok {
		delete(status, "conditions")
	}
}

// TestConditionsWrittenAlone shows that if a status is refused, the conditions and the changes of handlers are tried
// separately.
func TestConditionsWrittenAlone(t *testing.T) {
	run(t, map[string]scenario{
		"Handlers": {"conditions are written alone if the status of a handler is refused", func(w *harness) {
			w.withStatus()
			w.before = func(one write) error {
				if at(one.patch, "status", "own") != nil {
					return errForbidden
				}
				return nil
			}
			p := w.startReporting(nil, onCreate("a", patches("x", "status", "own")))
			_, _ = p.pass()
			w.wantConditions("after one pass", "True", nil, nil)
			w.wantAt("the refused status", nil, "status", "own")
			w.wantWrites("together, without, alone",
				"status 403", "main 200", "status 403", "main 200", "status 200")
			p.wantRefusals("the conditions were accepted", false, "")
		}},
		"NoPlace": {"a refused status is not retried if the kind accepts no conditions", func(w *harness) {
			w.withStatus()
			w.before = func(one write) error {
				if one.status {
					return errForbidden
				}
				return nil
			}
			p := w.startReporting(nil, onCreate("a", patches("x", "status", "own")))
			p.acceptance.close()
			p.settle()
			w.wantWrites("once", "status 403", "main 200")
		}},
		"NothingNew": {"a refused status is not retried if the conditions are already correct", func(w *harness) {
			w.withStatus()
			p := w.startReporting(nil, onCreate("a", ok), onUpdate("u", returns("x")))
			p.settle()
			w.wantConditions("the first outcome", "True", nil, nil)
			w.set("x", "metadata", "labels", "l")
			w.drainWrites()
			w.before = func(one write) error {
				if one.status {
					return errForbidden
				}
				return nil
			}
			p.settle()
			w.wantWrites("once", "status 403", "main 200")
		}},
		"Closed": {"conditions that were refused for another object meanwhile are not retried", func(w *harness) {
			w.withStatus()
			p := w.startReporting(nil, onCreate("a", ok))
			w.before = func(one write) error {
				if one.status {
					p.acceptance.close()
					return errForbidden
				}
				return nil
			}
			p.settle()
			w.wantWrites("the status once, and the rest without", "status 403", "main 200", "main 200")
			p.wantRefusals("nothing is reported again", true, "")
		}},
		"Gone": {"no write follows after the object was deleted", func(w *harness) {
			w.withStatus()
			first := true
			w.before = func(one write) error {
				switch {
				case !one.status:
					return nil
				case first:
					first = false
					return errForbidden
				}
				w.delete()
				return nil
			}
			p := w.startReporting(nil, onCreate("a", patches("x", "status", "own")))
			p.settle()
			w.wantWrites("until the deletion", "status 403", "main 200", "status 404")
		}},
	})
}

// TestConditionsNotKept shows that conditions that were accepted but are not on the object are not reported as refused
// if there is another explanation.
func TestConditionsNotKept(t *testing.T) {
	run(t, map[string]scenario{
		"Closed": {"missing conditions are not reported again if the kind is already closed", func(w *harness) {
			w.withStatus()
			w.webhook = lacksConditions
			p := w.startReporting(nil, onCreate("a", ok))
			w.after = func(write) error { p.acceptance.close(); return nil }
			p.settle()
			w.wantConditions("dropped", nil, nil, nil)
			p.wantRefusals("closed before", true, "")
		}},
		"Released": {"missing conditions of a released object are not reported", func(w *harness) {
			w.withStatus()
			later := fails(9, temporaryError{delay: 10 * time.Second})
			p := w.startReporting(nil, onDelete("d", all(patches(nil, "metadata", "finalizers"), later)))
			p.settle()
			w.drainWrites()
			w.webhook = lacksConditions
			w.delete()
			next, err := p.pass()
			w.want("the release", []any{true, nil}, []any{next.Released, err})
			w.wantWrites("the deletion", "status 200", "main 200")
			p.wantRefusals("released", true, "")
		}},
	})
}
