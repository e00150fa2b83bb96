package explorer_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/explorer"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

const (
	group      = "explorer.example.org"
	plural     = "carriers"
	namespace  = "default"
	objectName = "one"
	// settleTime is how long everything may take to come to an end after the last step of a scenario.
	settleTime = 10 * time.Minute
)

var (
	gvk      = schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Carrier"}
	carriers = memapi.Resource{
		Group: group, Version: "v1", Kind: "Carrier", Plural: plural, Namespaced: true, StatusSubresource: true,
	}
)

// Change and Selection are those of the scenarios.
type (
	Change    = kopf.Change[*unstructured.Unstructured]
	Selection = kopf.Selection[*unstructured.Unstructured]
)

// harness is the API server with one object, the clients that change it, and the operator's outside effects.
type harness struct {
	t        testing.TB
	scenario scenario
	server   *memapi.Server
	client   client.Client // of everybody but the operator
	ledger   ledger
}

// life is one process.
type life struct {
	*harness
	process *explorer.Life
}

// scenarioFactory is the scenario for the explorer, in a new world each time.
func scenarioFactory(s scenario) func() explorer.Scenario {
	return func() explorer.Scenario {
		w := &harness{scenario: s}
		return explorer.Scenario{
			Server: func(t testing.TB) *memapi.Server {
				w.t, w.server = t, memapi.New()
				w.server.Install(carriers)
				if s.validate != nil {
					w.server.SetAdmission(memapi.Admission{
						Validate: func(_ memapi.Resource, o map[string]any) error { return s.validate(o) },
					})
				}
				return w.server
			},
			Operator: func(process *explorer.Life) *kopf.Operator {
				op := kopf.New(group, s.settings)
				s.register(&life{harness: w, process: process}, kopf.ForResource(op, group+"/v1", plural))
				return op
			},
			Play:    w.play,
			Through: w.through,
			Foreign: addForeignLabel,
		}
	}
}

// addForeignLabel adds a label. It keeps the others: a child of another namespace that has lost the label of its parent
// is a foreign object for the next process, which refuses to change it.
func addForeignLabel(o *unstructured.Unstructured) {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels["foreign"] = "yes"
	o.SetLabels(labels)
}

// play is all steps, and the end.
func (w *harness) play(p *explorer.Play) {
	w.client = p.Client
	for _, step := range w.scenario.steps {
		p.Sleep(step.delay)
		step.do(w)
	}
	p.Sleep(settleTime)
	for _, wrong := range w.unfinished() {
		p.T.Error(wrong)
	}
}

// through keeps the books on the way of the operator's requests, beyond the fault of the scenario.
func (w *harness) through(next http.RoundTripper) http.RoundTripper {
	var way http.RoundTripper = recordingTransport{harness: w, next: next}
	if w.scenario.through != nil {
		way = w.scenario.through(way)
	}
	return way
}

// recordingTransport records the writes of the operator.
type recordingTransport struct {
	harness *harness
	next    http.RoundTripper
}

// RoundTrip looks at the object after a write.
func (n recordingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := n.next.RoundTrip(r)
	if r.Method != http.MethodGet {
		n.harness.ledger.recordFinalizer(n.harness.object())
	}
	return response, err
}

// edit changes the object, if there is one.
func (w *harness) edit(change func(*unstructured.Unstructured)) {
	for {
		object := w.object()
		if object == nil {
			return
		}
		change(object)
		err := w.client.Update(context.Background(), object)
		switch {
		case err == nil || client.IgnoreNotFound(err) == nil:
			return
		case !isConflict(err):
			w.t.Errorf("editing the object: %v", err)
			return
		}
	}
}

// object returns the present object, or nil if it does not exist.
func (w *harness) object() *unstructured.Unstructured {
	object := w.server.Object(carriers, namespace, objectName)
	if object == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: object}
}
