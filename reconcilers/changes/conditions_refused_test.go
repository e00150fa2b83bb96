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

// TestRefusedConditions shows that handlers continue if the API server refuses or drops the conditions of an object.
func TestRefusedConditions(t *testing.T) {
	const dropped = "the API server took the conditions, but did not keep them"
	resource := schema.GroupResource{Group: "example.org", Resource: "examples"}
	forbidden := apierrors.NewForbidden(resource, "obj", errors.New("no rights"))
	onStatus := func(w *harness, answer error) {
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
		"Forbidden": {"missing rights for the status close the conditions for the whole kind", func(w *harness) {
			w.withStatus()
			onStatus(w, forbidden)
			p := w.startReporting(nil, onCreate("a", ok))
			p.settle()
			w.wantHandled("handled without conditions", w.at("spec", "field"))
			p.wantRefusals("finally", true, forbidden.Error())
		}},
		"NotFound": {"a missing status subresource closes the conditions for the whole kind", func(w *harness) {
			w.withStatus()
			missing := apierrors.NewNotFound(resource, "obj")
			onStatus(w, missing)
			p := w.startReporting(nil)
			p.settle()
			p.wantRefusals("finally", true, missing.Error())
		}},
		"Schema": {"conditions that are invalid for one object do not close them for its kind", func(w *harness) {
			w.withStatus()
			w.schema = func(body map[string]any) error {
				if at(body, "status", "conditions") != nil {
					return apierrors.NewInvalid(schema.GroupKind{Kind: "Example"}, "obj", field.ErrorList{
						field.TooLong(field.NewPath("status", "conditions"), "", 1),
					})
				}
				return nil
			}
			p := w.startReporting(nil, onCreate("a", patches("x", "status", "own")))
			p.settle()
			w.wantAt("the status of the handler is stored", "x", "status", "own")
			w.wantHandled("the creation is handled", w.at("spec", "field"))
			p.wantRefusals("finally", false, "Too long")
		}},
		"Dropped": {"conditions that the schema drops silently are closed for the whole kind", func(w *harness) {
			w.withStatus()
			w.webhook = lacks
			p := w.startReporting(nil, onCreate("a", ok))
			p.settle()
			p.wantRefusals("with an outcome", true, dropped)
			p = w.startReporting(nil)
			p.settle()
			p.wantRefusals("without an outcome", true, dropped)
		}},
		"Unreadable": {"a status with conditions that are not a list does not close them for its kind",
			func(w *harness) {
				w.withStatus()
				w.webhook = func(body map[string]any) {
					if status, ok := body["status"].(map[string]any); ok && status["conditions"] != nil {
						status["conditions"] = "fine"
					}
				}
				p := w.startReporting(nil, onCreate("a", ok))
				p.settle()
				p.wantRefusals("finally", false, "is not a list")
			}},
		"OutOfOrder": {"after a server error, the conditions are written again later", func(w *harness) {
			w.withStatus()
			broken := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError}}
			onStatus(w, broken)
			p := w.startReporting(nil)
			if _, err := p.pass(); err == nil {
				w.t.Error("the pass succeeded, want an error")
			}
			onStatus(w, nil)
			p.settle()
			w.wantConditions("the server works again", "True", nil, nil)
			p.wantRefusals("a server error does not count as a refusal", false, "")
		}},
	})
}
