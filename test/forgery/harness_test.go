package forgery_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// attempts is how often a handler is called for one change at most.
const attempts = 3

var gvk = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Target"}

// harness is an API server with a forged object and an honest one, and an operator that handles both.
type harness struct {
	t       *testing.T
	server  *memapi.Server
	client  client.Client        // of the people
	runners []*facadetest.Runner // of the operator
}

type change = kopf.Change[*unstructured.Unstructured]

func newHarness(t *testing.T, subresource bool) *harness {
	w := &harness{t: t, server: memapi.New()}
	w.server.Install(
		memapi.Resource{
			Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Plural: "targets", Namespaced: true,
			StatusSubresource: subresource,
		},
	)
	direct, err := client.New(memapi.Config(w.server), client.Options{})
	if err != nil {
		t.Fatalf("making a client: %v", err)
	}
	w.client = direct
	return w
}

// startOperator runs the operator until it is stopped.
func (w *harness) startOperator(m storageVariant) (stop func()) {
	op := kopf.New(operatorName, m.settings)
	w.register(kopf.ForResource(op, gvk.GroupVersion().String(), "targets"), m)
	r := facadetest.Start(w.t, op, facadetest.Against(memapi.Config(w.server)))
	w.runners = append(w.runners, r)
	return func() {
		if err := r.Stop(); err != nil {
			w.t.Errorf("the operator ended: %v", err)
		}
	}
}

func (w *harness) register(s kopf.Selection[*unstructured.Unstructured], m storageVariant) {
	if m.isRedacted {
		s = s.Redacted("spec")
	}
	limits := kopf.Retries(attempts)
	s.OnCreate("c", w.handle, limits)
	s.OnUpdate("u", w.handle, limits, kopf.Timeout(time.Hour))
	s.OnField("f", "spec.value", w.handle, limits)
	s.On("p", []kopf.Reason{kopf.ReasonCreate, kopf.ReasonUpdate}, func(ctx context.Context, c *change) error {
		c.Sub("one", w.handle, limits)
		c.Sub("two", w.handle, limits)
		return nil
	}, limits)
	s.OnResume("r", w.handle, limits)
	s.OnDelete("d", w.handle, limits)
}

var errNotYet = errors.New("not yet")

// handle fails at first if the object says so.
func (*harness) handle(_ context.Context, c *change) error {
	if c.Object.GetLabels()["fails"] == "yes" && c.Retry == 0 {
		return kopf.Temporary(errNotYet, 10*time.Second)
	}
	c.SetResult("done")
	return nil
}

func (w *harness) countCalls(object, handler string) (times int) {
	for _, r := range w.runners {
		for _, c := range r.Calls() {
			if c.Name == object && c.Handler == handler {
				times++
			}
		}
	}
	return times
}

func (w *harness) countWrites(object string) (times int) {
	for _, r := range w.runners {
		for _, one := range r.Writes() {
			if strings.HasSuffix(strings.TrimSuffix(one.Path, "/status"), "/targets/"+object) {
				times++
			}
		}
	}
	return times
}

// longestLogLine is the longest line of the log.
func (w *harness) longestLogLine() (longest string) {
	for _, r := range w.runners {
		for line := range strings.Lines(r.Output()) {
			if len(line) > len(longest) {
				longest = line
			}
		}
	}
	return longest
}

func newTarget(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"value": "x"}}}
	object.SetGroupVersionKind(gvk)
	object.SetNamespace("default")
	object.SetName(name)
	return object
}

// patch reports whether the server accepted the patch.
func (w *harness) patch(name string, patch map[string]any, status bool) bool {
	raw, err := json.Marshal(patch)
	if err != nil {
		w.t.Fatal(err)
	}
	merge := client.RawPatch(types.MergePatchType, raw)
	if status {
		return w.client.Status().Patch(context.Background(), newTarget(name), merge) == nil
	}
	return w.client.Patch(context.Background(), newTarget(name), merge) == nil
}

// object returns the present object, or nil if it does not exist.
func (w *harness) object(name string) *unstructured.Unstructured {
	object := newTarget(name)
	err := w.client.Get(context.Background(), client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.t.Fatalf("reading %s: %v", name, err)
	}
	return object
}

func (w *harness) create(name string) {
	if err := w.client.Create(context.Background(), newTarget(name)); err != nil {
		w.t.Fatalf("creating %s: %v", name, err)
	}
}

func (w *harness) remove(name string) {
	if err := w.client.Delete(context.Background(), newTarget(name)); client.IgnoreNotFound(err) != nil {
		w.t.Fatalf("deleting %s: %v", name, err)
	}
}
