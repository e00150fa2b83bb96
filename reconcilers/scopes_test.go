package reconcilers_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// namespaceClient creates and deletes namespaces.
type namespaceClient struct{ directClient }

// createNamespace creates a namespace with a config map in it.
func (l namespaceClient) createNamespace(name string) {
	l.t.Helper()
	namespace := l.object("Namespace", name)
	namespace.SetNamespace("")
	if err := l.Create(context.Background(), namespace); err != nil {
		l.t.Fatal(err)
	}
	l.createContent(name)
}

// createContent creates a config map in a namespace, which need not exist.
func (l namespaceClient) createContent(name string) {
	l.t.Helper()
	content := l.object("ConfigMap", "in-"+name)
	content.SetNamespace(name)
	if err := l.Create(context.Background(), content); err != nil {
		l.t.Fatal(err)
	}
}

// terminateNamespace marks a namespace for deletion, with a condition. The finalizer replaces that in the spec of real
// namespaces.
func (l namespaceClient) terminateNamespace(name, remaining string) {
	l.t.Helper()
	namespace := l.object("Namespace", name)
	namespace.SetNamespace("")
	finalizer := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["kubernetes.io/content"]}}`))
	if err := l.Patch(context.Background(), namespace, finalizer); err != nil {
		l.t.Fatal(err)
	}
	if err := l.Delete(context.Background(), namespace); err != nil {
		l.t.Fatal(err)
	}
	l.setContentRemaining(name, remaining)
}

// setContentRemaining sets the condition whether a terminating namespace still has content.
func (l namespaceClient) setContentRemaining(name, remaining string) {
	l.t.Helper()
	namespace := l.object("Namespace", name)
	namespace.SetNamespace("")
	status := `{"status":{"conditions":[{"type":"NamespaceContentRemaining","status":"` + remaining + `"}]}}`
	patch := client.RawPatch(types.MergePatchType, []byte(status))
	if err := l.Status().Patch(context.Background(), namespace, patch); err != nil {
		l.t.Fatal(err)
	}
}

// deleteNamespace deletes a namespace and its content.
func (l namespaceClient) deleteNamespace(name string) {
	l.t.Helper()
	content := l.object("ConfigMap", "in-"+name)
	content.SetNamespace(name)
	namespace := l.object("Namespace", name)
	namespace.SetNamespace("")
	for _, o := range []*unstructured.Unstructured{content, namespace} {
		if err := l.Delete(context.Background(), o); err != nil {
			l.t.Fatal(err)
		}
	}
}

// namespaceRecorder collects the namespaces of the objects that a handler was called for.
type namespaceRecorder struct {
	mu    sync.Mutex
	names []string
}

func (v *namespaceRecorder) handler(id string, reason cause.Reason) *handlers.Handler {
	return &handlers.Handler{ID: id, Reason: reason, Call: func(_ context.Context, c *handlers.Invocation) error {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.names = append(v.names, (&unstructured.Unstructured{Object: c.Cause.Body()}).GetNamespace())
		return nil
	}}
}

// take returns and removes the collected namespaces.
func (v *namespaceRecorder) take() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	slices.Sort(v.names)
	all := strings.Join(v.names, " ")
	v.names = nil
	return all
}

// TestNamespaceEndsWhenItsObjectsHaveFinished shows that a terminating namespace is served as long as it has content,
// so that deletion handlers are called.
func TestNamespaceEndsWhenItsObjectsHaveFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		l := namespaceClient{newDirectClient(t, server)}
		l.createNamespace("a1")
		var deleted namespaceRecorder
		connection := &watchCounter{RoundTripper: server, plural: "configmaps"}
		stop := operateAll(t, connection, reconcilers.Options{Namespaces: named("a*")},
			registrationFor(t, "configmaps", deleted.handler("d", cause.Delete)))
		defer stop()
		time.Sleep(10 * time.Second)
		l.terminateNamespace("a1", "True")
		time.Sleep(time.Hour)
		content := l.object("ConfigMap", "in-a1")
		content.SetNamespace("a1")
		if err := l.Delete(t.Context(), content); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if got := deleted.take(); got != "a1" || connection.open.Load() != 1 {
			t.Errorf("an hour after the deletion, handled in %q, %d watches, want a1 and 1", got,
				connection.open.Load())
		}
		l.setContentRemaining("a1", "False")
		time.Sleep(10 * time.Second)
		if open := connection.open.Load(); open != 0 {
			t.Errorf("%d watches of a terminating namespace without content, want 0", open)
		}
	})
}

// TestNamesNeedNoWatch shows the deviation D-namespace-names: an operator for namespaces given by name needs no
// permission to list namespaces.
func TestNamesNeedNoWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		l := namespaceClient{newDirectClient(t, server)}
		var requests atomic.Int64
		var seen namespaceRecorder
		stop := operateAll(t, interceptRequests(server, func(_ context.Context, r memapi.Request) int {
			if r.Resource.Plural == "namespaces" {
				requests.Add(1)
			}
			return 0
		}), reconcilers.Options{Namespaces: named("b", "a", "b")},
			registrationFor(t, "configmaps", seen.handler("c", cause.Create)))
		defer stop()
		time.Sleep(10 * time.Second)
		l.createNamespace("a")
		l.createNamespace("b")
		time.Sleep(10 * time.Second)
		if got := seen.take(); got != "a b" || requests.Load() != 0 {
			t.Errorf("handled in %q, %d requests for namespaces, want a b and 0", got, requests.Load())
		}
	})
}

// TestNamespacesThatMayNotBeListed shows the deviation D-namespace-refused: without the permission to list namespaces,
// those given by name are served; the others when it is granted.
func TestNamespacesThatMayNotBeListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		l := namespaceClient{newDirectClient(t, server)}
		for _, name := range []string{"a", "b1", "c"} {
			l.createNamespace(name)
		}
		var seen namespaceRecorder
		var refused atomic.Bool
		refused.Store(true)
		var lines journal
		log := funcr.New(func(_, line string) { lines.add(line) }, funcr.Options{})
		stop := operateLogged(t, interceptRequests(server, func(_ context.Context, r memapi.Request) int {
			if r.Resource.Plural == "namespaces" && refused.Load() {
				return http.StatusForbidden
			}
			return 0
		}), log, reconcilers.Options{Namespaces: named("a", "b*", "ns[0-9]")},
			registrationFor(t, "configmaps", seen.handler("c", cause.Create)))
		defer stop()
		time.Sleep(time.Hour)
		if got := seen.take(); got != "a" {
			t.Errorf("without permission, handled in %q, want a", got)
		}
		if told := strings.Count(lines.String(), "Not allowed to list namespaces"); told != 1 {
			t.Errorf("want one line about the permission, got %d: %s", told, lines.String())
		}
		refused.Store(false)
		time.Sleep(10 * time.Minute)
		if got := seen.take(); got != "b1" {
			t.Errorf("with permission, handled in %q, want b1", got)
		}
		refused.Store(true)
		time.Sleep(time.Hour)
		l.createContent("b2")
		if time.Sleep(time.Minute); seen.take() != "" || strings.Count(lines.String(), "Cannot watch namespaces") > 2 {
			t.Errorf("without permission again, only known namespaces must be served: %s", lines.String())
		}
	})
}

// TestNamespacesWithoutScanning shows that without scanning, only namespaces given by name are served.
func TestNamespacesWithoutScanning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		l := namespaceClient{newDirectClient(t, server)}
		l.createNamespace("a")
		l.createNamespace("b1")
		var seen namespaceRecorder
		stop := operateAll(t, server, reconcilers.Options{Namespaces: named("a", "b*"), ScanOnce: true},
			registrationFor(t, "configmaps", seen.handler("c", cause.Create)))
		defer stop()
		time.Sleep(time.Minute)
		if got := seen.take(); got != "a" {
			t.Errorf("handled in %q, want a", got)
		}
	})
}

// TestClusterScopedKindsUnderPatterns shows that cluster-scoped objects are served, whatever the patterns and
// namespaces are.
func TestClusterScopedKindsUnderPatterns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		l := namespaceClient{newDirectClient(t, server)}
		l.createNamespace("other")
		var seen namespaceRecorder
		stop := operateAll(t, server, reconcilers.Options{Namespaces: named("a*")},
			registrationFor(t, "namespaces", &handlers.Handler{ID: "c", Reason: cause.Create, Call: func(
				_ context.Context, c *handlers.Invocation,
			) error {
				seen.mu.Lock()
				defer seen.mu.Unlock()
				seen.names = append(seen.names, (&unstructured.Unstructured{Object: c.Cause.Body()}).GetName())
				return nil
			}}))
		defer stop()
		time.Sleep(time.Minute)
		if got := seen.take(); got != "other" {
			t.Errorf("handled %q, want other", got)
		}
	})
}
