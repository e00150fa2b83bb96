package transport_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-runtime/kopf-runtime/internal/transport"
)

// cachingManager is a manager with a cache, the only part that is needed here.
type cachingManager struct {
	manager.Manager

	ownCache cache.Cache
}

func (c cachingManager) GetCache() cache.Cache { return c.ownCache }

type someCache struct{ cache.Cache }

// counter counts the requests.
type counter struct{ sent int }

func (c *counter) RoundTrip(*http.Request) (*http.Response, error) {
	c.sent++
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// body records that it was closed.
type body struct {
	io.Reader

	closed bool
}

func (b *body) Close() error { b.closed = true; return nil }

// startFence returns a fence in a running manager, and a function that takes it down.
func startFence(t *testing.T) (f *transport.Fence, down func()) {
	t.Helper()
	f = transport.NewFence(cachingManager{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- f.Start(ctx) }()
	return f, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the end of the manager is returned as an error: %v", err)
		}
	}
}

// TestCacheOfTheManager shows that a fence is among the caches of its manager, which end after everything that needs a
// leader.
func TestCacheOfTheManager(t *testing.T) {
	own := someCache{}
	if got := transport.NewFence(cachingManager{ownCache: own}).GetCache(); got != own {
		t.Errorf("the fence has another cache than its manager: %v", got)
	}
}

// TestHolds shows how a fence finds out whether its manager waits for the operator.
func TestHolds(t *testing.T) {
	tests := map[string]struct {
		reason string
		after  time.Duration // the end of the manager, relative to the call
		holds  bool
		takes  time.Duration
	}{
		"Before": {"a fence that is down does not hold", -time.Second, false, 0},
		"Soon": {"a fence that comes down soon does not hold, as its manager does not wait",
			10 * time.Millisecond, false,
			10 * time.Millisecond},
		"Later": {"a fence that stands for a while holds, as its manager waits",
			time.Second, true, 100 * time.Millisecond},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, down := startFence(t)
				if tc.after < 0 {
					down()
				} else {
					time.AfterFunc(tc.after, down)
				}
				began := time.Now()
				if got := f.ManagerWaits(); got != tc.holds || time.Since(began) != tc.takes {
					t.Errorf("%s: holds: %t, after %s", tc.reason, got, time.Since(began))
				}
				time.Sleep(time.Minute)
				if <-f.Down(); f.ManagerWaits() {
					t.Error("a fence that is down holds")
				}
			})
		})
	}
}

// TestRequests shows that requests pass a standing fence and are refused by one that is down, with their bodies closed.
func TestRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &counter{}
		f, down := startFence(t)
		fenced := f.WrapRoundTrip(next.RoundTrip)
		send := func(content io.ReadCloser) error {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/", content)
			if err != nil {
				t.Fatal(err)
			}
			response, err := fenced(request)
			if err == nil {
				err = response.Body.Close()
			}
			return err
		}
		if err := send(nil); err != nil || next.sent != 1 {
			t.Errorf("the standing fence refused: %v; %d requests", err, next.sent)
		}
		down()
		content := &body{Reader: strings.NewReader("{}")}
		for _, content := range []io.ReadCloser{content, nil} {
			if err := send(content); !isRefused(err) {
				t.Errorf("the fence is down but passed a write: %v", err)
			}
		}
		if next.sent != 1 || !content.closed {
			t.Errorf("%d requests were sent, want one; body closed: %t, want true", next.sent, content.closed)
		}
	})
}

// TestClient shows that all writes of a client are refused while the fence is down, and that reads are not.
func TestClient(t *testing.T) {
	f, down := startFence(t)
	object := &corev1.Pod{}
	object.Namespace, object.Name = "ns", "p"
	c := f.WrapClient(fake.NewClientBuilder().Build())
	writes := []struct {
		name string
		call func(context.Context) error
	}{
		{"Create", func(ctx context.Context) error {
			other := &corev1.Pod{}
			other.Namespace, other.Name = "ns", "other"
			return c.Create(ctx, other)
		}},
		{"Update", func(ctx context.Context) error { return c.Update(ctx, object) }},
		{"Patch", func(ctx context.Context) error { return c.Patch(ctx, object, mergePatch(`{}`)) }},
		{"Status", func(ctx context.Context) error { return c.Status().Update(ctx, object) }},
		{"StatusPatch", func(ctx context.Context) error {
			return c.SubResource("status").Patch(ctx, object, mergePatch(`{"status":{"phase":"Failed"}}`))
		}},
		{"StatusApply", func(ctx context.Context) error {
			status := corev1apply.PodStatus().WithPhase(corev1.PodRunning)
			return c.Status().Apply(ctx, corev1apply.Pod("p", "ns").WithStatus(status), client.FieldOwner("o"),
				client.ForceOwnership)
		}},
		{"SubResourceCreate", func(ctx context.Context) error {
			return c.SubResource("binding").Create(ctx, object, &corev1.Binding{})
		}},
		{"Apply", func(ctx context.Context) error {
			return c.Apply(ctx, corev1apply.Pod("q", "ns"), client.FieldOwner("o"))
		}},
		{"DeleteAllOf", func(ctx context.Context) error {
			return c.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace("ns"))
		}},
		{"Delete", func(ctx context.Context) error { return c.Delete(ctx, object) }},
	}
	for _, write := range writes { // ignore errors of the server
		if err := write.call(t.Context()); isRefused(err) {
			t.Errorf("%s: the standing fence refused: %v", write.name, err)
		}
	}
	down()
	for _, write := range writes {
		if err := write.call(t.Context()); !isRefused(err) {
			t.Errorf("%s: the fence is down but passed the write: %v", write.name, err)
		}
	}
	if err := c.List(t.Context(), &corev1.PodList{}); err != nil {
		t.Errorf("a read is refused: %v", err)
	}
}

func isRefused(err error) bool {
	return err != nil && strings.Contains(err.Error(), "nothing is written")
}

func mergePatch(patch string) client.Patch {
	return client.RawPatch("application/merge-patch+json", []byte(patch))
}

// TestPermission shows that writes without permission are refused while the fence stands, and that reads are not.
func TestPermission(t *testing.T) {
	next := &counter{}
	f, down := startFence(t)
	defer down()
	allowed := true
	f.LimitWrites(func(context.Context, string) bool { return allowed })
	c := f.WrapClient(fake.NewClientBuilder().Build())
	for _, allowed = range []bool{true, false, true} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete} {
			request, err := http.NewRequestWithContext(t.Context(), method, "http://localhost/", nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := f.WrapRoundTrip(next.RoundTrip)(request)
			if err == nil {
				_ = response.Body.Close()
			}
			if want := !allowed && method != http.MethodGet; isRefused(err) != want {
				t.Errorf("permission %t, %s: refused %t: %v", allowed, method, !want, err)
			}
		}
		object := &corev1.Pod{}
		object.Namespace, object.Name = "ns", "p"
		if err := c.Delete(t.Context(), object); isRefused(err) == allowed {
			t.Errorf("permission %t, client of handlers: %v", allowed, err)
		}
		if err := c.List(t.Context(), &corev1.PodList{}); err != nil {
			t.Errorf("permission %t, a read is refused: %v", allowed, err)
		}
	}
}

// TestPermissionByNamespace shows that the permission depends on the namespace of the written object.
func TestPermissionByNamespace(t *testing.T) {
	f, down := startFence(t)
	defer down()
	f.LimitWrites(func(_ context.Context, namespace string) bool { return namespace != "shut" })
	for path, want := range map[string]bool{
		"/apis/apps/v1/namespaces/shut/deployments/d":        true,
		"/apis/apps/v1/namespaces/shut/deployments/d/status": true,
		"/apis/apps/v1/namespaces/open/deployments/shut":     false,
		"/api/v1/namespaces/shut":                            false, // a namespace itself is cluster-scoped
		"/api/v1/nodes/n":                                    false,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, "http://localhost"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := f.WrapRoundTrip((&counter{}).RoundTrip)(request)
		if err == nil {
			_ = response.Body.Close()
		}
		if isRefused(err) != want {
			t.Errorf("%s: refused %t, want %t", path, isRefused(err), want)
		}
	}
	c, pod := f.WrapClient(fake.NewClientBuilder().Build()), &corev1.Pod{}
	for namespace, want := range map[string]bool{"shut": true, "open": false} {
		pod.Namespace, pod.Name = namespace, "p"
		for name, err := range map[string]error{
			"Delete":      c.Delete(t.Context(), pod),
			"Status":      c.Status().Update(t.Context(), pod),
			"DeleteAllOf": c.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(namespace)),
			"Apply":       c.Apply(t.Context(), corev1apply.Pod("p", namespace)),
		} {
			if isRefused(err) != want {
				t.Errorf("%s in %s: refused %t, want %t", name, namespace, isRefused(err), want)
			}
		}
	}
}
