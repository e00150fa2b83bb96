package reconcilers_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/memapi"
)

// A handler of a field inside of a scalar is not for that object, in whatever family; all others are, and it is, too,
// once there is a mapping.
func TestFieldsInsideOfScalars(t *testing.T) {
	families := map[string]handlers.Handler{
		"Changing": {NeedsChange: true},
		"Watching": {Family: handlers.Watching},
		"Daemon":   {Family: handlers.Spawning, Background: &handlers.Background{Daemon: true}},
		"Timer":    {Family: handlers.Spawning, Background: &handlers.Background{Interval: time.Hour}},
	}
	for name, h := range families {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, j := memapi.New(), &journal{began: time.Now()}
				p := newPeople(t, server)
				note := func(id string) handlers.Func {
					return func(context.Context, *handlers.Call) error { j.add(id); return nil }
				}
				h.ID, h.Field, h.Call = "f", diff.Path{"spec", "b", "c"}, note("f")
				p.create("Pod", "c")
				p.merge("Pod", "c", `{"spec":{"b":"text"}}`)
				stop := operateAll(t, server, reconcilers.Options{}, to(t, "pods", &h),
					to(t, "pods", &handlers.Handler{ID: "a", Reason: cause.Create, Call: note("created")}),
					to(t, "pods", &handlers.Handler{ID: "u", Reason: cause.Update, Call: note("updated")}))
				defer stop()
				time.Sleep(10 * time.Second)
				p.merge("Pod", "c", `{"spec":{"b":"other"}}`)
				time.Sleep(10 * time.Second)
				if d := cmp.Diff("0s created; 10s updated", j.String()); d != "" {
					t.Errorf("a scalar: -want, +got:\n%s", d)
				}
				j.lines = nil
				p.merge("Pod", "c", `{"spec":{"b":{"c":"text"}}}`)
				time.Sleep(10 * time.Second)
				if both := map[string]bool{"20s f; 20s updated": true, "20s updated; 20s f": true}; !both[j.first(2)] {
					t.Errorf("a mapping: both must have been called: %s", j)
				}
			})
		})
	}
}

// first are the first lines.
func (j *journal) first(n int) string {
	j.mu.Lock()
	j.lines = j.lines[:min(n, len(j.lines))]
	j.mu.Unlock()
	return j.String()
}
