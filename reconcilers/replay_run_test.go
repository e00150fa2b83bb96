package reconcilers_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/keys"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
	"github.com/kopf-runtime/kopf-runtime/test/vectors/declared"
	"github.com/kopf-runtime/kopf-runtime/test/vectors/diffbasetest"
	"github.com/kopf-runtime/kopf-runtime/test/vectors/progresstest"
)

// cycleRun is the replay of one case.
type cycleRun struct {
	t                 *testing.T
	input             vectors.Fields
	server            *memapi.Server
	discoveryResource discovery.Resource
	resource          memapi.Resource
	original          map[string]any
	namespace, name   string
	connection        *replayConnection
	callCounts        map[string]int // the number of calls by function
	stop              func()
	gate              *reconcilers.Gate

	mu     sync.Mutex
	log    []any
	closed bool
}

func newRun(t *testing.T, input vectors.Fields) *cycleRun {
	r := &cycleRun{
		t: t, input: input, server: memapi.New(), callCounts: map[string]int{}, gate: &reconcilers.Gate{},
		stop: func() {},
	}
	r.original = input.Mapping("object")
	metadata := input.Mapping("object").Mapping("metadata")
	r.namespace, r.name = metadata.Text("namespace", ""), metadata.Text("name", "")
	r.discoveryResource = declared.Resource(t, input["resource"])
	// The kind is that of the objects, whatever the name of the resource is.
	r.discoveryResource.Kind = input.Mapping("object").Text("kind", r.discoveryResource.Kind)
	r.resource = memapi.Resource{
		Group: r.discoveryResource.Group, Version: r.discoveryResource.Version, Kind: r.discoveryResource.Kind,
		Plural:     r.discoveryResource.Plural,
		Singular:   r.discoveryResource.Singular,
		ShortNames: r.discoveryResource.Shortcuts, Categories: r.discoveryResource.Categories,
		Namespaced:        r.discoveryResource.Namespaced,
		StatusSubresource: slices.Contains(r.discoveryResource.Subresources, "status"),
	}
	r.server.Install(r.resource)
	latency := ptr.Deref(declared.Seconds(t, input, "latency"), 0)
	r.connection = &replayConnection{
		next: r.server, plural: r.discoveryResource.Plural, latency: latency,
		interferences: input.List("interferences"),
		failures:      input.List("failures"), ownVersions: map[string]bool{}, change: r.change,
	}
	return r
}

// start runs the operator; stop ends it.
func (r *cycleRun) start(ctx context.Context, options reconcilers.Options) {
	ctx, cancel := context.WithCancel(ctx)
	m, err := ctrl.NewManager(memapi.Config(r.connection), ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	if err := reconcilers.SetupWithManager(m, options); err != nil {
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
	settings := vectors.Fields{}
	if r.input["settings"] != nil {
		// The timeout of Kopf for the events of own writes is not needed here: their outcome is known at once.
		settings = vectors.Known(r.t, r.input["settings"], "background.cancellation_polling",
			"background.instant_exit_timeout",
			"persistence.consistency_timeout")
	}
	o := reconcilers.Options{
		Settings: reconcilers.Settings{
			Name: "kopf", Prefix: keys.KopfPrefix, Finalizer: ownFinalizer, Lifecycle: r.lifecycle(),
			LeaveFinalizers: true, KopfDeletions: true, KopfTexts: true,
			CancelPolling: ptr.Deref(declared.Seconds(r.t, settings, "background.cancellation_polling"), 0),
			InstantExit:   ptr.Deref(declared.Seconds(r.t, settings, "background.instant_exit_timeout"), 0),
		},
		Gate: r.gate,
	}
	var err error
	if o.Diffbase, err = diffbasetest.Storage(r.t, r.input["diffbase"]); err != nil {
		r.t.Fatal(err)
	}
	if o.Progress, err = progresstest.Storage(r.t, r.input["progress"]); err != nil {
		r.t.Fatal(err)
	}
	meant := discovery.OfKind(r.discoveryResource.GroupVersionKind)
	for _, h := range r.handlers() {
		o.Registrations = append(o.Registrations, reconcilers.Registration{Selector: meant, Handler: h})
	}
	return o
}

func (r *cycleRun) lifecycle() handlers.Lifecycle {
	name := r.input.Text("lifecycle", "asap")
	found, ok := map[string]handlers.Lifecycle{
		"asap": handlers.ASAP, "one_by_one": handlers.OneByOne, "all_at_once": handlers.AllAtOnce,
		"randomized": handlers.Randomized, "shuffled": handlers.Shuffled,
	}[name]
	if !ok {
		r.t.Fatalf("the harness does not support the lifecycle %q", name)
	}
	return found
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
	entry["t"] = time.Since(kopfStart).Seconds()
	r.log = append(r.log, entry)
}

// play runs one step of the timeline. A change of an absent object does nothing.
func (r *cycleRun) play(ctx context.Context, step vectors.Fields, options reconcilers.Options) {
	switch op := step.Text("op", ""); op {
	case "add":
		r.server.Put(r.resource, r.original)
	case "patch":
		r.change(ctx, step.Mapping("patch"))
	case "delete":
		r.request(ctx, http.MethodDelete, nil)
	case "list", "echo":
		r.connection.inject(r.object())
	case "stale":
		if r.object() == nil {
			return
		}
		stale := runtime.DeepCopyJSON(r.original)
		metadata, _ := stale["metadata"].(map[string]any)
		metadata["resourceVersion"] = "100"
		r.connection.inject(stale)
	case "pause", "resume":
		r.gate.Set(op == "pause")
	case "exit":
		r.stop()
		r.stop = func() {}
	case "restart":
		r.stop()
		r.note(map[string]any{"what": "restarted"})
		r.start(ctx, options)
	default:
		r.t.Fatalf("the harness does not support the step %q", op)
	}
}

func (r *cycleRun) object() map[string]any { return r.server.Object(r.resource, r.namespace, r.name) }

// change changes the whole object at once, including its status, like another client.
func (r *cycleRun) change(ctx context.Context, patch map[string]any) {
	object := r.object()
	if object == nil || patch == nil {
		return
	}
	if patch["status"] == nil || !r.resource.StatusSubresource {
		r.request(ctx, http.MethodPatch, patch)
		return
	}
	merge := patching.Patch{Merge: patch}
	changed, err := merge.ApplyTo(object)
	if err != nil {
		r.t.Errorf("changing the object: %v", err)
		return
	}
	r.server.Put(r.resource, changed)
}

// path returns the URL path of the object.
func (r *cycleRun) path() string {
	path := "/apis/" + r.discoveryResource.Group + "/" + r.discoveryResource.Version
	if r.discoveryResource.Group == "" {
		path = "/api/" + r.discoveryResource.Version
	}
	if r.namespace != "" && r.discoveryResource.Namespaced {
		path += "/namespaces/" + r.namespace
	}
	return path + "/" + r.discoveryResource.Plural + "/" + r.name
}

func (r *cycleRun) request(ctx context.Context, method string, patch any) {
	data := ""
	if patch != nil {
		text, err := json.Marshal(patch)
		if err != nil {
			r.t.Errorf("encoding a patch: %v", err)
			return
		}
		data = string(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://mem"+r.path(), strings.NewReader(data))
	if err != nil {
		r.t.Errorf("making a request: %v", err)
		return
	}
	request.Header.Set("Content-Type", "application/merge-patch+json")
	response, err := r.server.RoundTrip(request)
	if err != nil {
		r.t.Errorf("%s %s: %v", method, request.URL, err)
		return
	}
	_ = response.Body.Close()
	if response.StatusCode >= http.StatusMultipleChoices && response.StatusCode != http.StatusNotFound {
		r.t.Errorf("%s %s: %s", method, request.URL, response.Status)
	}
}
