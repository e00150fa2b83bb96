package changes_test

import (
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestRefusedConditions is about an API server that does not take what objects tell of their handlers: the handlers are
// not to suffer from that.
func TestRefusedConditions(t *testing.T) {
	const dropped = "the API server took the conditions, but did not keep them"
	resource := schema.GroupResource{Group: "example.org", Resource: "examples"}
	forbidden := apierrors.NewForbidden(resource, "obj", errors.New("no rights"))
	onStatus := func(w *world, answer error) {
		w.before = func(one write) error {
			if one.status {
				return answer
			}
			return nil
		}
	}
	lacks := func(body map[string]any) {
		if status, ok := body["status"].(map[string]any); ok {
			delete(status, "conditions")
		}
	}
	run(t, map[string]scenario{
		"Forbidden": {"rights are those of all objects", func(w *world) {
			w.withStatus()
			onStatus(w, forbidden)
			p := w.tell(nil, onCreate("a", ok))
			p.settle()
			w.wantHandled("all the same", w.at("spec", "field"))
			p.wantRefusals("in the end", true, forbidden.Error())
		}},
		"NotFound": {"so is the place", func(w *world) {
			w.withStatus()
			missing := apierrors.NewNotFound(resource, "obj")
			onStatus(w, missing)
			p := w.tell(nil)
			p.settle()
			p.wantRefusals("in the end", true, missing.Error())
		}},
		"Schema": {"one object may have what another one has not", func(w *world) {
			w.withStatus()
			w.schema = func(body map[string]any) error {
				if at(body, "status", "conditions") != nil {
					return apierrors.NewInvalid(schema.GroupKind{Kind: "Example"}, "obj", field.ErrorList{
						field.TooLong(field.NewPath("status", "conditions"), "", 1),
					})
				}
				return nil
			}
			p := w.tell(nil, onCreate("a", patches("x", "status", "own")))
			p.settle()
			w.wantAt("what the handler says is kept", "x", "status", "own")
			w.wantHandled("and that it was called", w.at("spec", "field"))
			p.wantRefusals("in the end", false, "Too long")
		}},
		"Dropped": {"a schema drops what it does not know without a word", func(w *world) {
			w.withStatus()
			w.webhook = lacks
			p := w.tell(nil, onCreate("a", ok))
			p.settle()
			p.wantRefusals("with an outcome", true, dropped)
			p = w.tell(nil)
			p.settle()
			p.wantRefusals("without news", true, dropped)
		}},
		"Unreadable": {"one object may have something else in that place", func(w *world) {
			w.withStatus()
			w.webhook = func(body map[string]any) {
				if status, ok := body["status"].(map[string]any); ok && status["conditions"] != nil {
					status["conditions"] = "fine"
				}
			}
			p := w.tell(nil, onCreate("a", ok))
			p.settle()
			p.wantRefusals("in the end", false, "is not a list")
		}},
		"OutOfOrder": {"what may work later is tried again", func(w *world) {
			w.withStatus()
			broken := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError}}
			onStatus(w, broken)
			p := w.tell(nil)
			if _, err := p.pass(); err == nil {
				w.t.Error("the pass has succeeded")
			}
			onStatus(w, nil)
			p.settle()
			w.wantTold("it works again", "True", nil, nil)
			p.wantRefusals("it is no refusal", false, "")
		}},
	})
}
