package reconcilers_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
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
			onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
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
