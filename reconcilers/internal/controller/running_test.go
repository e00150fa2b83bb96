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
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/controller"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/memory"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/posting"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

const prefix = "op.example.org"

var (
	configMapKind  = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	resource       = discovery.Resource{GroupVersionKind: configMapKind, Plural: "configmaps", Namespaced: true}
	serverResource = memapi.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}
)

// kindFixture is one kind on an API server in memory. The test starts and stops its controllers.
type kindFixture struct {
	t              *testing.T
	server         *memapi.Server
	connection     *memapi.Connection
	userClient     client.Client
	deps           *controller.Dependencies
	turn           controller.Turn
	liveNamespaces *namespaces.LiveNamespaces
	handlers       []*adapters.HandlerChain

	mu            sync.Mutex
	calls         []string
	logLines      []string
	forgottenUIDs []types.UID
	resyncs       int
}

// cluster is the part of a manager that controllers need.
type cluster struct{ config *rest.Config }

func (c cluster) GetConfig() *rest.Config  { return c.config }
func (cluster) GetScheme() *runtime.Scheme { return runtime.NewScheme() }

// RequestResync counts the requested resyncs.
func (s *kindFixture) RequestResync() { s.withLock(func() { s.resyncs++ }) }

func (s *kindFixture) appendLogLine(_, line string) {
	s.withLock(func() { s.logLines = append(s.logLines, line) })
}
func (s *kindFixture) recordForgotten(uid types.UID) {
	s.withLock(func() { s.forgottenUIDs = append(s.forgottenUIDs, uid) })
}
func (s *kindFixture) recordCall(what string) { s.withLock(func() { s.calls = append(s.calls, what) }) }

func name(c *handlers.Invocation) string {
	return (&unstructured.Unstructured{Object: c.Cause.Body()}).GetName()
}

func succeed(*handlers.Invocation) error { return nil }

func (s *kindFixture) takeAll(of *[]string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := *of
	*of = nil
	return all
}

func (s *kindFixture) withLock(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func newKindFixture(t *testing.T) *kindFixture {
	s := &kindFixture{t: t, server: memapi.New(), liveNamespaces: namespaces.NewLive(namespaces.Everywhere)}
	s.connection = s.server.Connect()
	var err error
	if s.userClient, err = memapi.NewClient(s.server, serverResource); err != nil {
		t.Fatal(err)
	}
	s.deps = &controller.Dependencies{
		Settings: kind.Settings{
			Name: prefix, Prefix: prefix, Finalizer: prefix + "/finalizer", BoundTo: prefix + "/handled-uid",
			Diffbase: diffbase.Annotations{Prefix: prefix}, Progress: progress.Annotations{Prefix: prefix},
			Workers: 10, WriteTimeout: time.Minute,
		}.WithDefaults(),
		Forget: s.recordForgotten, Cluster: cluster{memapi.Config(s.connection)},
		HTTPClient: &http.Client{Transport: s.connection},
		Log:        funcr.New(s.appendLogLine, funcr.Options{Verbosity: 1}), Memory: &memory.Registry{},
		RequestResync: s.RequestResync,
		Outage:        &controller.Outage{}, Events: posting.New(nil, posting.Options{Component: prefix}),
		Writer: patching.PatchWriter{}, WriteHTTPClient: &http.Client{Transport: s.connection},
	}
	return s
}

// addHandler adds a handler that records each call with the name of its object, and then calls does.
func (s *kindFixture) addHandler(h *handlers.Handler, does func(c *handlers.Invocation) error) {
	h.Call = func(_ context.Context, c *handlers.Invocation) error {
		s.recordCall(h.ID + " " + name(c))
		return does(c)
	}
	s.handlers = append(s.handlers, adapters.New(h, nil))
}

// run starts the controllers and returns a function that stops them with a cause. They are stopped with the test at the
// latest. It waits for the immediate effects.
func (s *kindFixture) run() (stop func(cause error)) {
	return s.startRun(func(ctx context.Context) {
		controller.Run(ctx, s.deps, s.turn, resource, s.liveNamespaces,
			s.handlers)
	})
}

func (s *kindFixture) startRun(run func(ctx context.Context)) (stop func(cause error)) {
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
	s.waitUntilSettled()
	return stop
}

// waitUntilSettled waits until everything that takes less than a second has happened.
func (s *kindFixture) waitUntilSettled() {
	time.Sleep(time.Second)
	synctest.Wait()
}

func (s *kindFixture) object(namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(configMapKind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func (s *kindFixture) create(namespace, name string) {
	s.t.Helper()
	if err := s.userClient.Create(s.t.Context(), s.object(namespace, name)); err != nil {
		s.t.Fatal(err)
	}
	s.waitUntilSettled()
}

func (s *kindFixture) edit(namespace, name, patch string) {
	s.t.Helper()
	if err := s.userClient.Patch(
		s.t.Context(), s.object(namespace, name), client.RawPatch(types.MergePatchType, []byte(patch)),
	); err != nil {
		s.t.Fatal(err)
	}
	s.waitUntilSettled()
}

func (s *kindFixture) remove(namespace, name string) {
	s.t.Helper()
	if err := s.userClient.Delete(s.t.Context(), s.object(namespace, name)); err != nil {
		s.t.Fatal(err)
	}
	s.waitUntilSettled()
}

// requireCalls compares the calls since the last check, in any order.
func (s *kindFixture) requireCalls(when string, calls ...string) {
	s.t.Helper()
	synctest.Wait()
	got := s.takeAll(&s.calls)
	slices.Sort(got)
	slices.Sort(calls)
	if d := cmp.Diff(calls, got); d != "" {
		s.t.Errorf("%s: calls: -want, +got:\n%s", when, d)
	}
}

// requireDeletions compares the number of objects reported as deleted since the last check.
func (s *kindFixture) requireDeletions(when string, n int) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.forgottenUIDs) != n {
		s.t.Errorf("%s: %d objects were reported as deleted, want %d", when, len(s.forgottenUIDs), n)
	}
	s.forgottenUIDs = nil
}

// linesWith returns the log lines since the last check that contain the words.
func (s *kindFixture) linesWith(words string) (found []string) {
	for _, line := range s.takeAll(&s.logLines) {
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
