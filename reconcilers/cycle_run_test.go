package reconcilers_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
	"github.com/kopf-runtime/kopf-runtime/test/memapi"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// cycleRun is one case being replayed.
type cycleRun struct {
	t               *testing.T
	input           vectors.Fields
	server          *memapi.Server
	resource        memapi.Resource
	original        map[string]any
	namespace, name string
	line            *line
	began           time.Time
	behaviours      map[string]int // how often each function was called
	stop            func()
	gate            *reconcilers.Gate

	mu     sync.Mutex
	log    []any
	closed bool
}

func newRun(t *testing.T, input vectors.Fields) *cycleRun {
	r := &cycleRun{t: t, input: input, server: memapi.New(), behaviours: map[string]int{}}
	r.original = input.Mapping("object")
	metadata := input.Mapping("object").Mapping("metadata")
	r.namespace, r.name = metadata.Text("namespace", ""), metadata.Text("name", "")
	r.resource = memapi.Resource{
		Group: "kopf.dev", Version: "v1", Kind: "KopfExample", Plural: "kopfexamples", Namespaced: true,
		ShortNames: []string{"kex"}, Categories: []string{"all"},
	}
	if given := input.Mapping("resource"); given != nil {
		vectors.Known(t, map[string]any(given), "subresources")
		for _, name := range given.List("subresources") {
			r.resource.StatusSubresource = r.resource.StatusSubresource || name == "status"
		}
	}
	r.server.Install(r.resource)
	var latency time.Duration
	if input["latency"] != nil {
		latency = time.Duration(number(input["latency"]) * float64(time.Second))
	}
	r.line = &line{next: r.server, latency: latency, interferences: input.List("interferences"), own: map[string]bool{}}
	return r
}

func (r *cycleRun) at(seconds any) time.Time {
	return r.began.Add(time.Duration(number(seconds) * float64(time.Second)))
}

// start runs the operator; stop ends it.
func (r *cycleRun) start(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	m, err := ctrl.NewManager(memapi.Config(r.line), ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	if err := reconcilers.SetupWithManager(m, r.options()); err != nil {
		r.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := m.Start(ctx); err != nil {
			r.t.Errorf("the manager: %v", err)
		}
	}()
	r.stop = func() { cancel(); <-done }
}

func (r *cycleRun) options() reconcilers.Options {
	o := reconcilers.Options{
		Name: "kopf", Prefix: keys.KopfPrefix, Finalizer: keys.KopfPrefix + "/KopfFinalizerMarker",
		Lifecycle: r.lifecycle(),
		Diffbase:  diffbaseOf(r.t, r.input["diffbase"]), Progress: progressOf(r.t, r.input["progress"]),
	}
	r.gate = &reconcilers.Gate{}
	o.Gate, o.LeaveFinalizers = r.gate, true
	o.CancelPolling = r.setting("background.cancellation_polling")
	for _, h := range r.handlers() {
		o.Registrations = append(o.Registrations, reconcilers.Registration{Selector: kopfexamples, Handler: h})
	}
	return o
}

func (r *cycleRun) lifecycle() execution.Lifecycle {
	name := r.input.Text("lifecycle", "asap")
	found, ok := map[string]execution.Lifecycle{
		"asap": execution.ASAP, "one_by_one": execution.OneByOne, "all_at_once": execution.AllAtOnce,
		"randomized": execution.Randomized, "shuffled": execution.Shuffled,
	}[name]
	if !ok {
		r.t.Fatalf("the harness does not know the lifecycle %q", name)
	}
	return found
}

// play is one step of the timeline.
func (r *cycleRun) play(ctx context.Context, step vectors.Fields) {
	path := "/apis/kopf.dev/v1/namespaces/" + r.namespace + "/kopfexamples/" + r.name
	switch op := step.Text("op", ""); op {
	case "list":
	case "add":
		r.server.Put(r.resource, r.original)
	case "patch":
		r.request(ctx, http.MethodPatch, path, step["patch"])
	case "delete":
		r.request(ctx, http.MethodDelete, path, nil)
	case "echo":
		r.line.inject(r.server.Object(r.resource, r.namespace, r.name))
	case "stale":
		stale := runtime.DeepCopyJSON(r.original)
		stale["metadata"].(map[string]any)["resourceVersion"] = "100"
		r.line.inject(stale)
	case "pause", "resume":
		r.gate.Set(op == "pause")
	case "exit":
		r.stop()
		r.stop = func() {}
	case "restart":
		r.stop()
		r.note(map[string]any{"what": "restarted"})
		r.start(ctx)
	default:
		r.t.Fatalf("the harness does not know the step %q", op)
	}
}

func (r *cycleRun) request(ctx context.Context, method, path string, patch any) {
	data := ""
	if patch != nil {
		text, err := json.Marshal(patch)
		if err != nil {
			r.t.Fatal(err)
		}
		data = string(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://mem"+path, strings.NewReader(data))
	if err != nil {
		r.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/merge-patch+json")
	response, err := r.server.RoundTrip(request)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	_ = response.Body.Close()
	if response.StatusCode >= http.StatusMultipleChoices && response.StatusCode != http.StatusNotFound {
		r.t.Errorf("%s %s: %s", method, path, response.Status)
	}
}

func (r *cycleRun) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

func (r *cycleRun) note(entry map[string]any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	entry["t"] = time.Since(r.began).Seconds()
	r.log = append(r.log, entry)
}
