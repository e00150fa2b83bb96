package controller_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/controller"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/posting"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/memory"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/namespaces"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/settings"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

const prefix = "op.example.org"

var (
	kind     = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	resource = discovery.Resource{GroupVersionKind: kind, Plural: "configmaps", Namespaced: true}
	stored   = memapi.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}
)

// site is one kind on an API server in memory. The test starts and stops its controllers.
type site struct {
	t          *testing.T
	server     *memapi.Server
	connection *memapi.Connection
	people     client.Client
	deps       *controller.Dependencies
	turn       controller.Turn
	live       *namespaces.LiveNamespaces
	handlers   []*adapters.HandlerChain

	mu      sync.Mutex
	calls   []string
	said    []string
	gone    []types.UID
	resyncs int
}

// cluster is the part of a manager that controllers need.
type cluster struct{ config *rest.Config }

func (c cluster) GetConfig() *rest.Config  { return c.config }
func (cluster) GetScheme() *runtime.Scheme { return runtime.NewScheme() }

// RequestResync counts the requested resyncs.
func (s *site) RequestResync() { s.change(func() { s.resyncs++ }) }

func (s *site) say(_, line string)   { s.change(func() { s.said = append(s.said, line) }) }
func (s *site) forget(uid types.UID) { s.change(func() { s.gone = append(s.gone, uid) }) }
func (s *site) note(what string)     { s.change(func() { s.calls = append(s.calls, what) }) }

func name(c *handlers.Invocation) string {
	return (&unstructured.Unstructured{Object: c.Cause.Body()}).GetName()
}

func succeeding(*handlers.Invocation) error { return nil }

func (s *site) take(of *[]string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := *of
	*of = nil
	return all
}

func (s *site) change(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func newSite(t *testing.T) *site {
	s := &site{t: t, server: memapi.New(), live: namespaces.NewLive(namespaces.Everywhere)}
	s.connection = s.server.Connect()
	var err error
	if s.people, err = memapi.NewClient(s.server, stored); err != nil {
		t.Fatal(err)
	}
	s.deps = &controller.Dependencies{
		Settings: settings.Settings{
			Name: prefix, Prefix: prefix, Finalizer: prefix + "/finalizer", BoundTo: prefix + "/handled-uid",
			Diffbase: diffbase.Annotations{Prefix: prefix}, Progress: progress.Annotations{Prefix: prefix},
			Workers: 10, WriteTimeout: time.Minute,
		}.WithDefaults(),
		Forget: s.forget, Cluster: cluster{memapi.Config(s.connection)},
		HTTPClient: &http.Client{Transport: s.connection},
		Log:        funcr.New(s.say, funcr.Options{Verbosity: 1}), Resync: s, Memory: &memory.Registry{},
		Outage: &controller.Outage{}, Events: posting.New(nil, posting.Options{Component: prefix}),
		Writer: patching.PatchWriter{}, Writes: &http.Client{Transport: s.connection},
	}
	return s
}

// handle adds a handler that records each call with the name of its object, and then calls does.
func (s *site) handle(h *handlers.Handler, does func(c *handlers.Invocation) error) {
	h.Call = func(_ context.Context, c *handlers.Invocation) error {
		s.note(h.ID + " " + name(c))
		return does(c)
	}
	s.handlers = append(s.handlers, adapters.New(h, nil))
}

// run starts the controllers and returns a function that stops them with a cause. They are stopped with the test at the
// latest. It waits for the immediate effects.
func (s *site) run() (stop func(cause error)) {
	return s.begin(func(ctx context.Context) { controller.Run(ctx, s.deps, s.turn, resource, s.live, s.handlers) })
}

func (s *site) begin(run func(ctx context.Context)) (stop func(cause error)) {
	ctx, cancel := context.WithCancelCause(s.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	stop = func(cause error) {
		cancel(cause)
		<-done
	}
	s.t.Cleanup(func() { stop(nil) })
	s.settle()
	return stop
}

// settle waits until everything that takes less than a second has happened.
func (s *site) settle() {
	time.Sleep(time.Second)
	synctest.Wait()
}

func (s *site) object(namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func (s *site) create(namespace, name string) {
	s.t.Helper()
	if err := s.people.Create(s.t.Context(), s.object(namespace, name)); err != nil {
		s.t.Fatal(err)
	}
	s.settle()
}

func (s *site) edit(namespace, name, patch string) {
	s.t.Helper()
	if err := s.people.Patch(
		s.t.Context(), s.object(namespace, name), client.RawPatch(types.MergePatchType, []byte(patch)),
	); err != nil {
		s.t.Fatal(err)
	}
	s.settle()
}

func (s *site) remove(namespace, name string) {
	s.t.Helper()
	if err := s.people.Delete(s.t.Context(), s.object(namespace, name)); err != nil {
		s.t.Fatal(err)
	}
	s.settle()
}

// want compares the calls since the last check, in any order.
func (s *site) want(when string, calls ...string) {
	s.t.Helper()
	synctest.Wait()
	got := s.take(&s.calls)
	slices.Sort(got)
	slices.Sort(calls)
	if d := cmp.Diff(calls, got); d != "" {
		s.t.Errorf("%s: calls: -want, +got:\n%s", when, d)
	}
}

// requireDeletions compares the number of objects reported as deleted since the last check.
func (s *site) requireDeletions(when string, n int) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.gone) != n {
		s.t.Errorf("%s: %d objects were reported as deleted, want %d", when, len(s.gone), n)
	}
	s.gone = nil
}

// lines returns the log lines since the last check that contain the words.
func (s *site) lines(words string) (found []string) {
	for _, line := range s.take(&s.said) {
		if strings.Contains(line, words) {
			found = append(found, line)
		}
	}
	return found
}

func explain(t *testing.T, reason string) {
	if t.Failed() {
		t.Log("the reason of this case:", reason)
	}
}
