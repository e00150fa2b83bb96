package kopf_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// TestHandlersThatDeleteTheirObject shows that a handler that deletes its own object is not called again. Its patches
// are dropped, and no warning or error is logged.
func TestHandlersThatDeleteTheirObject(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	type selection = kopf.Selection[*kopf.Unstructured]
	remove := func(ctx context.Context, c client.Client, o client.Object) error {
		return client.IgnoreNotFound(c.Delete(ctx, o))
	}
	done := func(o *kopf.Unstructured) { _ = kopf.SetField(o, "status.done", true) }
	creation := func(ctx context.Context, c *kopf.Change[*kopf.Unstructured]) error {
		c.Patch(done)
		c.SetResult("deleted")
		return remove(ctx, c.Client, c.Object)
	}
	for name, tc := range map[string]struct {
		reason   string
		register func(s selection)
		want     map[string]int // calls of each handler
	}{
		"Creation": {"a creation handler can delete an object without a finalizer", func(s selection) {
			s.OnCreate("make", creation)
		}, map[string]int{"make": 1}},
		"HeldCreation": {"the deletion of an object with a finalizer is handled", func(s selection) {
			s.OnCreate("make", creation)
			s.OnDelete("drop", ignoreUnstructured)
		}, map[string]int{"make": 1, "drop": 1}},
		"FailingCreation": {"a failed handler of a deleted object is not retried", func(s selection) {
			s.OnCreate("make", func(ctx context.Context, c *kopf.Change[*kopf.Unstructured]) error {
				_ = remove(ctx, c.Client, c.Object)
				return kopf.Temporary(errors.New("own error"), time.Second)
			})
		}, map[string]int{"make": 1}},
		"Timer": {"a timer does not tick again for a deleted object", func(s selection) {
			s.Timer("tick", time.Minute, func(ctx context.Context, r *kopf.Task[*kopf.Unstructured]) error {
				r.Patch(done)
				return remove(ctx, r.Client, r.Latest())
			})
		}, map[string]int{"tick": 1}},
		"Daemon": {"the daemon of a deleted object is stopped", func(s selection) {
			s.Daemon("run", func(ctx context.Context, r *kopf.Task[*kopf.Unstructured]) error {
				r.Patch(done)
				_ = remove(ctx, r.Client, r.Latest())
				<-ctx.Done()
				return nil
			})
		}, map[string]int{"run": 1}},
		"Event": {"an event handler is also called for the deletion", func(s selection) {
			s.OnEvent("see", func(ctx context.Context, e *kopf.WatchEvent[*kopf.Unstructured]) error {
				if e.Type == kopf.WatchEventDeleted {
					return nil
				}
				e.Patch(done)
				return remove(ctx, e.Client, e.Object)
			})
		}, map[string]int{"see": 2}},
	} {
		t.Run(name, func(t *testing.T) {
			onServer(t, func(t *testing.T, server *memapi.Server) {
				kind := widgetResource
				kind.StatusSubresource = true
				server.Install(kind)
				op := kopf.New("test.example.org")
				tc.register(kopf.ForResource(op, "widgets"))
				r := facadetest.Start(t, op, facadetest.Against(memapi.Config(server)))
				r.Ready()
				server.Put(kind, body(map[string]any{"size": int64(1)}))
				r.Settle(time.Hour, 48*time.Hour)
				if left := server.Object(kind, "ns", "w1"); left != nil {
					t.Errorf("%s: the object is still there: %v", tc.reason, left)
				}
				calls := map[string]int{}
				for _, call := range r.Calls() {
					calls[call.Handler]++
				}
				if diff := cmp.Diff(tc.want, calls); diff != "" {
					t.Errorf("%s: calls, -want +got:\n%s", tc.reason, diff)
				}
				for line := range strings.Lines(r.Output()) {
					if strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR") {
						if !strings.Contains(line, "own error") {
							t.Errorf("%s: %s", tc.reason, line)
						}
					}
				}
			})
		})
	}
}
