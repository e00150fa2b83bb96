package reconcilers_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
	"github.com/kopf-runtime/kopf-runtime/test/logkeys"
)

// directClient creates, changes and deletes objects directly on the API server.
type directClient struct {
	client.Client
	t *testing.T
}

func (p directClient) get(kind, name string) *unstructured.Unstructured {
	o := p.object(kind, name)
	if err := p.Get(context.Background(), types.NamespacedName{Namespace: "default", Name: name}, o); err != nil {
		return nil
	}
	return o
}

func (p directClient) object(kind, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{
		Object: map[string]any{
			"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name, "namespace": "default"},
		},
	}
}

func (p directClient) create(kind, name string) {
	p.t.Helper()
	if err := p.Create(context.Background(), p.object(kind, name)); err != nil {
		p.t.Fatal(err)
	}
}

func (p directClient) createMany(kind, prefix string, count int) {
	p.t.Helper()
	for n := range count {
		p.create(kind, fmt.Sprint(prefix, "-", n))
	}
}

func (p directClient) label(kind, name, value string) {
	p.t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"l":"`+value+`"}}}`))
	if err := p.Patch(context.Background(), p.object(kind, name), patch); err != nil {
		p.t.Fatal(err)
	}
}

func (p directClient) merge(kind, name, patch string) {
	p.t.Helper()
	if err := p.Patch(
		context.Background(), p.object(kind, name), client.RawPatch("application/merge-patch+json", []byte(patch)),
	); err != nil {
		p.t.Fatal(err)
	}
}

func (p directClient) remove(kind, name string) {
	p.t.Helper()
	if err := p.Delete(context.Background(), p.object(kind, name)); err != nil {
		p.t.Fatal(err)
	}
}

func (p directClient) count(kind string) int {
	p.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("v1")
	list.SetKind(kind + "List")
	if err := p.List(context.Background(), list); err != nil {
		p.t.Fatal(err)
	}
	return len(list.Items)
}

func newDirectClient(t *testing.T, server *memapi.Server) directClient {
	t.Helper()
	direct, err := client.New(memapi.Config(server), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return directClient{direct, t}
}

// onServer runs a test with an API server on virtual time.
func onServer(t *testing.T, test func(t *testing.T, server *memapi.Server, p directClient)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		test(t, server, newDirectClient(t, server))
	})
}

func daemon(id string, b handlers.BackgroundOptions, call handlers.Func) *handlers.Handler {
	b.Daemon = true
	return &handlers.Handler{ID: id, Family: handlers.Background, Background: &b, Call: call}
}

// counting returns a handler of changes that only counts its calls.
func counting(id string, reason cause.Reason, calls *atomic.Int64) *handlers.Handler {
	return &handlers.Handler{ID: id, Reason: reason, Call: func(context.Context, *handlers.Invocation) error {
		calls.Add(1)
		return nil
	}}
}

func timer(id string, interval time.Duration, call handlers.Func) *handlers.Handler {
	return &handlers.Handler{
		ID: id, Family: handlers.Background, Background: &handlers.BackgroundOptions{Interval: interval}, Call: call,
	}
}

func succeed(context.Context, *handlers.Invocation) error { return nil }

func untilStopped(_ context.Context, c *handlers.Invocation) error {
	<-c.LiveObject.Stopping()
	return nil
}

// journal records lines with their times, from any goroutine.
type journal struct {
	mu        sync.Mutex
	startTime time.Time
	lines     []string
}

func (j *journal) add(what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, time.Since(j.startTime).Round(time.Second).String()+" "+what)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, "; ")
}

// operate runs an operator with one handler.
func operate(
	t *testing.T, connection http.RoundTripper, spelling string, h *handlers.Handler, backoffs ...time.Duration,
) (stop func()) {
	t.Helper()
	return operateAll(t, connection, reconcilers.Options{APIBackoffs: backoffs}, registrationFor(t, spelling, h))
}

func registrationFor(t *testing.T, spelling string, h *handlers.Handler) reconcilers.Registration {
	t.Helper()
	selector, err := discovery.ParseSpelling(spelling)
	if err != nil {
		t.Fatal(err)
	}
	return reconcilers.Registration{Selector: selector, Handler: h}
}

// operateAll runs an operator with handlers.
func operateAll(
	t *testing.T, connection http.RoundTripper, o reconcilers.Options, registrations ...reconcilers.Registration,
) (stop func()) {
	t.Helper()
	return operateLogged(t, connection, logr.Discard(), o, registrations...)
}

func operateLogged(
	t *testing.T, connection http.RoundTripper, log logr.Logger, o reconcilers.Options,
	registrations ...reconcilers.Registration,
) (stop func()) {
	t.Helper()
	return operateIn(t, managerOn(t, connection, log), o, registrations...)
}

func managerOn(t *testing.T, connection http.RoundTripper, log logr.Logger) ctrl.Manager {
	t.Helper()
	m, err := ctrl.NewManager(
		memapi.Config(connection), ctrl.Options{
			Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logkeys.Unique(t, log),
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// operateIn runs an operator with handlers in a manager.
func operateIn(
	t *testing.T, m ctrl.Manager, o reconcilers.Options, registrations ...reconcilers.Registration,
) (stop func()) {
	t.Helper()
	complete(&o, registrations...)
	if err := reconcilers.SetupWithManager(m, o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := m.Start(ctx); err != nil {
			t.Errorf("the manager: %v", err)
		}
	}()
	return func() { cancel(); <-done }
}

// named returns patterns or names of namespaces.
func named(texts ...string) (all namespaces.Patterns) {
	for _, text := range texts {
		all = append(all, namespaces.ParsePattern(text))
	}
	return all
}

// complete sets the options that all operators of these tests share.
func complete(o *reconcilers.Options, registrations ...reconcilers.Registration) {
	const name = "coming.example.org"
	o.Name, o.Prefix, o.Finalizer, o.Registrations = name, name, name+"/finalizer", registrations
	o.Diffbase = diffbase.Annotations{Prefix: name, Bound: o.BoundTo}
	o.Progress = progress.Annotations{Prefix: name, Bound: o.BoundTo}
}

// liveBody returns the newest state of the object of a background function.
func liveBody(call *handlers.Invocation) map[string]any {
	return (&cause.Cause{Object: call.LiveObject.Object()}).Body()
}
