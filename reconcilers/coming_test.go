package reconcilers_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
	"github.com/kopf-runtime/kopf-runtime/test/growth"
	"github.com/kopf-runtime/kopf-runtime/test/memapi"
)

// watched counts the watches that are open on a resource.
type watched struct {
	http.RoundTripper
	plural string
	open   atomic.Int64
}

func (w *watched) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := w.RoundTripper.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusOK && r.URL.Query().Get("watch") != "" && strings.HasSuffix(
		r.URL.Path, "/"+w.plural,
	) {
		w.open.Add(1)
		response.Body = &closing{ReadCloser: response.Body, closed: func() { w.open.Add(-1) }}
	}
	return response, err
}

// closing tells when the body is closed for the first time.
type closing struct {
	io.ReadCloser
	closed func()
	done   atomic.Bool
}

func (c *closing) Close() error {
	if !c.done.Swap(true) {
		c.closed()
	}
	return c.ReadCloser.Close()
}

func definition() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{
			"name": "comets.sky.example.org",
		},
		"spec": map[string]any{
			"group": "sky.example.org", "scope": "Namespaced",
			"names": map[string]any{
				"kind": "Comet", "plural": "comets", "singular": "comet", "categories": []any{"sky"},
			},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true}},
		},
	}}
}

// A custom kind that comes and goes takes its informer and all its goroutines with it.
func TestKindsThatComeAndGoLeaveNothing(t *testing.T) {
	const cycles = 50
	synctest.Test(t, func(t *testing.T) {
		connection := &watched{RoundTripper: memapi.New(), plural: "comets"}
		people, err := client.New(memapi.Config(connection), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var called atomic.Int64
		stop := operate(t, connection, "category=sky", &handlers.Handler{
			ID: "c", Reason: cause.Create, Call: func(
				context.Context, *handlers.Call,
			) error {
				called.Add(1)
				return nil
			},
		})
		defer stop()
		var goroutines []int
		for cycle := range cycles {
			crd := definition()
			comet := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "sky.example.org/v1", "kind": "Comet", "metadata": map[string]any{
					"name": fmt.Sprint("c", cycle), "namespace": "default",
				},
			}}
			for _, made := range []client.Object{crd, comet} {
				if err := people.Create(t.Context(), made); err != nil {
					t.Fatalf("cycle %d: %v", cycle, err)
				}
			}
			time.Sleep(5 * time.Second)
			if n := connection.open.Load(); n != 1 || called.Load() != int64(cycle+1) {
				t.Fatalf(
					"cycle %d: the kind is there: %d watches are open, and %d objects were handled", cycle, n,
					called.Load(),
				)
			}
			if err := people.Delete(t.Context(), crd); err != nil {
				t.Fatalf("cycle %d: %v", cycle, err)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if n := connection.open.Load(); n != 0 {
				t.Fatalf("cycle %d: the kind is gone, and %d watches are open", cycle, n)
			}
			goroutines = append(goroutines, growth.Goroutines())
		}
		t.Logf("goroutines after each of %d cycles: %v", cycles, goroutines)
		if first, last := goroutines[1], goroutines[cycles-1]; last > first+2 {
			t.Errorf("%d goroutines after two cycles, %d after %d: %v", first, last, cycles, goroutines)
		}
	})
}

// operate runs an operator with one handler.
func operate(
	t *testing.T, connection http.RoundTripper, spelling string, h *handlers.Handler, backoffs ...time.Duration,
) (stop func()) {
	t.Helper()
	return operateAll(t, connection, reconcilers.Options{APIBackoffs: backoffs}, to(t, spelling, h))
}

func to(t *testing.T, spelling string, h *handlers.Handler) reconcilers.Registration {
	t.Helper()
	selector, err := discovery.Spelled(spelling)
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
	m, err := ctrl.NewManager(
		memapi.Config(connection), ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}, Logger: log},
	)
	if err != nil {
		t.Fatal(err)
	}
	const name = "coming.example.org"
	o.Name, o.Prefix, o.Finalizer, o.Registrations = name, name, name+"/finalizer", registrations
	o.Diffbase, o.Progress = diffbase.Annotations{Prefix: name}, progress.Annotations{Prefix: name}
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
