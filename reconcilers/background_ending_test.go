package reconcilers_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/test/memapi"
)

// A daemon that returns by itself does not hold its object any more, and nothing else has to happen to the object for
// that.
func TestDaemonsThatEndLetGo(t *testing.T) {
	never := func(context.Context, *handlers.Call) error { return errors.New("never") }
	result := func(_ context.Context, c *handlers.Call) error { return c.Writes.SetResult("done") }
	late := func(then handlers.Func) handlers.Func {
		return func(ctx context.Context, c *handlers.Call) error { time.Sleep(20 * time.Second); return then(ctx, c) }
	}
	fatal := func(h *handlers.Handler) *handlers.Handler { h.Policy.Errors = handlers.ErrorsPermanent; return h }
	tests := map[string]struct {
		reason string
		own    *handlers.Handler
		status string
	}{
		"Nil":           {"it returns nothing", daemon("d", handlers.Background{}, late(succeed)), ""},
		"NilAtOnce":     {"even at once", daemon("d", handlers.Background{}, succeed), ""},
		"Result":        {"it returns something", daemon("d", handlers.Background{}, late(result)), "done"},
		"ResultAtOnce":  {"even at once", daemon("d", handlers.Background{}, result), "done"},
		"Failure":       {"it has failed for good", fatal(daemon("d", handlers.Background{}, late(never))), ""},
		"OneShot":       {"a timer without a schedule has returned", timer("d", 0, late(succeed)), ""},
		"FailedTimer":   {"a timer has failed for good", fatal(timer("d", time.Minute, late(never))), ""},
		"OneShotResult": {"a timer without a schedule has returned something", timer("d", 0, late(result)), "done"},
	}
	for name, tc := range tests {
		for when, finalizers := range map[string]string{"New": "", "Restarted": `"` + ours + `finalizer"`} {
			t.Run(name+"/"+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := memapi.New()
					p := newPeople(t, server)
					p.create("Pod", "c")
					p.merge("Pod", "c", `{"metadata":{"finalizers":[`+finalizers+`]}}`)
					defer operateAll(t, server, reconcilers.Options{}, to(t, "pods", tc.own))()
					time.Sleep(time.Minute)
					object := p.get("Pod", "c")
					if held := object.GetFinalizers(); len(held) > 0 {
						t.Errorf("%s: the object is still held: %v", tc.reason, held)
					}
					if got, _, _ := unstructured.NestedString(object.Object, "status", "d"); got != tc.status {
						t.Errorf("%s: the result is %q, want %q", tc.reason, got, tc.status)
					}
				})
			})
		}
	}
}

// What another one holds is still held.
func TestDaemonsThatEndLeaveOthersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		p := newPeople(t, server)
		p.create("ConfigMap", "c")
		defer operateAll(t, server, reconcilers.Options{},
			to(t, "configmaps", daemon("d", handlers.Background{}, succeed)),
			to(t, "configmaps", timer("t", time.Hour, succeed)))()
		time.Sleep(time.Minute)
		if d := cmp.Diff([]string{ours + "finalizer"}, p.get("ConfigMap", "c").GetFinalizers()); d != "" {
			t.Errorf("finalizers: -want, +got:\n%s", d)
		}
	})
}
