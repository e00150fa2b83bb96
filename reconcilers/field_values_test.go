package reconcilers_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// TestNullsInTheLastHandledConfiguration shows the deviation D-null-only: a configuration that differs only by a null
// is rewritten with the next change, or when the object is resumed; Kopf rewrites it after each restart.
func TestNullsInTheLastHandledConfiguration(t *testing.T) {
	const handled = "coming.example.org/last-handled-configuration"
	done := func(context.Context, *handlers.Invocation) error { return nil }
	cases := map[string]struct {
		reason    string
		resuming  bool
		edited    bool
		rewritten bool
	}{
		"Quiet":    {"without a change, the configuration is not rewritten", false, false, false},
		"Edited":   {"the next change rewrites the configuration", false, true, true},
		"Resuming": {"a resumed object's configuration is rewritten", true, false, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := memapi.New()
				p := newDirectClient(t, server)
				registrations := []reconcilers.Registration{
					registrationFor(t, "configmaps", &handlers.Handler{ID: "u", Reason: cause.Update, Call: done}),
				}
				if tc.resuming {
					registrations = append(
						registrations, registrationFor(t, "configmaps",
							&handlers.Handler{ID: "r", Initial: true, Call: done}),
					)
				}
				p.create("ConfigMap", "a")
				get := func() *unstructured.Unstructured {
					object := p.object("ConfigMap", "a")
					if err := p.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
						t.Fatal(err)
					}
					return object
				}
				annotate := func(key, value string) {
					object := get()
					annotations := object.GetAnnotations()
					if annotations == nil {
						annotations = map[string]string{}
					}
					annotations[key] = value
					object.SetAnnotations(annotations)
					if err := p.Update(t.Context(), object); err != nil {
						t.Fatal(err)
					}
				}
				annotate(handled, `{"data":null}`)
				before := get().GetResourceVersion()
				stop := operateAll(t, server, reconcilers.Options{}, registrations...)
				defer stop()
				time.Sleep(time.Minute)
				if tc.edited {
					annotate("example.org/note", "x")
					time.Sleep(time.Minute)
				}
				object := get()
				if rewritten := !strings.Contains(object.GetAnnotations()[handled], "null"); rewritten != tc.rewritten {
					t.Errorf("%s: the configuration is %s", tc.reason, object.GetAnnotations()[handled])
				}
				if written := object.GetResourceVersion() != before; written != tc.rewritten {
					t.Errorf("%s: the object was written to: %v", tc.reason, written)
				}
			})
		})
	}
}

// TestFieldsInsideOfScalars shows that a handler of a field within a scalar does not match the object, in any family,
// while other handlers do. It matches as soon as there is a mapping.
func TestFieldsInsideOfScalars(t *testing.T) {
	families := map[string]handlers.Handler{
		"Changing": {NeedsChange: true},
		"Watching": {Family: handlers.Watching},
		"Daemon":   {Family: handlers.Background, Background: &handlers.BackgroundOptions{Daemon: true}},
		"Timer":    {Family: handlers.Background, Background: &handlers.BackgroundOptions{Interval: time.Hour}},
	}
	for name, h := range families {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, j := memapi.New(), &journal{startTime: time.Now()}
				p := newDirectClient(t, server)
				note := func(id string) handlers.Func {
					return func(context.Context, *handlers.Invocation) error { j.add(id); return nil }
				}
				h.ID, h.Field, h.Call = "f", diff.Path{"spec", "b", "c"}, note("f")
				p.create("Pod", "c")
				p.merge("Pod", "c", `{"spec":{"b":"text"}}`)
				stop := operateAll(t, server, reconcilers.Options{}, registrationFor(t, "pods", &h),
					registrationFor(t, "pods", &handlers.Handler{ID: "a", Reason: cause.Create, Call: note("created")}),
					registrationFor(t, "pods", &handlers.Handler{ID: "u", Reason: cause.Update, Call: note("updated")}))
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

// first drops all lines but the first ones, and returns these.
func (j *journal) first(n int) string {
	j.mu.Lock()
	j.lines = j.lines[:min(n, len(j.lines))]
	j.mu.Unlock()
	return j.String()
}
