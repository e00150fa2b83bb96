package forgery_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// attempts is how often a handler is called for one change at most.
const attempts = 3

var gvk = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Target"}

// world is an API server with a forged object and an honest one, and an operator that handles both.
type world struct {
	t      *testing.T
	server *memapi.Server
	client client.Client // of the people

	mu      sync.Mutex
	calls   map[string]int // by "object handler"
	writes  map[string]int // of the operator, by object
	longest string         // the longest line of its log
}

type change = kopf.Change[*unstructured.Unstructured]

func newWorld(t *testing.T, subresource bool) *world {
	w := &world{t: t, server: memapi.New(), calls: map[string]int{}, writes: map[string]int{}}
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

// RoundTrip is the operator's way to the server.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/targets/") {
		w.mu.Lock()
		w.writes[path.Base(strings.TrimSuffix(r.URL.Path, "/status"))]++
		w.mu.Unlock()
	}
	return w.server.RoundTrip(r)
}

// operate runs the operator until it is stopped.
func (w *world) operate(m memory) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	log := funcr.New(func(prefix, line string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(line) > len(w.longest) {
			w.longest = prefix + line
		}
	}, funcr.Options{})
	manager, err := ctrl.NewManager(
		memapi.Config(w),
		ctrl.Options{Metrics: server.Options{BindAddress: "0"}, Logger: log, HealthProbeBindAddress: "0"},
	)
	if err != nil {
		w.t.Fatalf("making a manager: %v", err)
	}
	op := kopf.New(own, m.settings)
	w.register(kopf.ForResource(op, gvk.GroupVersion().String(), "targets"), m)
	if err := op.SetupWithManager(manager); err != nil {
		w.t.Fatalf("setting the operator up: %v", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := manager.Start(ctx); err != nil {
			w.t.Errorf("the manager ended: %v", err)
		}
	}()
	return func() { cancel(); <-done }
}

func (w *world) register(s kopf.Selection[*unstructured.Unstructured], m memory) {
	if m.redacted {
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

var errLater = errors.New("not yet")

// handle fails at first if the object says so.
func (w *world) handle(_ context.Context, c *change) error {
	w.mu.Lock()
	w.calls[c.Object.GetName()+" "+c.ID]++
	w.mu.Unlock()
	if c.Object.GetLabels()["fails"] == "yes" && c.Retry == 0 {
		return kopf.Temporary(errLater, 10*time.Second)
	}
	c.SetResult("done")
	return nil
}

func (w *world) called(object, handler string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[object+" "+handler]
}

func (w *world) written(object string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes[object]
}

func target(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"value": "x"}}}
	object.SetGroupVersionKind(gvk)
	object.SetNamespace("default")
	object.SetName(name)
	return object
}

// patch tells whether the server took it.
func (w *world) patch(name string, patch map[string]any, status bool) bool {
	raw, err := json.Marshal(patch)
	if err != nil {
		w.t.Fatal(err)
	}
	merge := client.RawPatch(types.MergePatchType, raw)
	if status {
		return w.client.Status().Patch(context.Background(), target(name), merge) == nil
	}
	return w.client.Patch(context.Background(), target(name), merge) == nil
}

// object is what there is of it; nil if it is no more.
func (w *world) object(name string) *unstructured.Unstructured {
	object := target(name)
	err := w.client.Get(context.Background(), client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.t.Fatalf("reading %s: %v", name, err)
	}
	return object
}

func (w *world) create(name string) {
	if err := w.client.Create(context.Background(), target(name)); err != nil {
		w.t.Fatalf("creating %s: %v", name, err)
	}
}

func (w *world) remove(name string) {
	if err := w.client.Delete(context.Background(), target(name)); client.IgnoreNotFound(err) != nil {
		w.t.Fatalf("deleting %s: %v", name, err)
	}
}
