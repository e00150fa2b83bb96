package changes_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// TestPatchesWithoutEffect shows that a patch that removes a field with a default is logged once for its handler.
func TestPatchesWithoutEffect(t *testing.T) {
	const line = "A patch had no effect"
	run(t, map[string]scenario{
		"Default": {"a removed field that gets its default again is logged once for each handler", func(w *harness) {
			w.webhook = func(body map[string]any) {
				if at(body, "spec", "enabled") == nil {
					put(body, true, "spec", "enabled")
				}
			}
			p := w.start(onCreate("c", patches(nil, "spec", "enabled")), onUpdate("u", patches(nil, "spec", "enabled")))
			p.handling.IneffectivePatchLabels = &sync.Map{}
			w.set(true, "spec", "enabled")
			p.settle()
			for _, value := range []string{"two", "three", "four"} {
				w.set(value, "spec", "field")
				p.settle()
			}
			w.want("lines", 2, strings.Count(strings.Join(w.logLines, "\n"), line))
			w.want("creation", true, w.hasLogged(line, `"handlers"=["c"]`, `"fields"=["spec.enabled"]`))
			w.want("updates", true, w.hasLogged(line, `"handlers"=["u"]`, `"fields"=["spec.enabled"]`))
		}},
		"MapKeys": {"fields below map keys share one entry in memory and one log line", func(w *harness) {
			w.webhook = func(body map[string]any) {
				tenants, _ := at(body, "spec", "tenants").(map[string]any)
				for _, tenant := range tenants {
					if tenant.(map[string]any)["quota"] == nil {
						put(tenant.(map[string]any), int64(5), "quota")
					}
				}
			}
			name := "t0"
			p := w.start(onUpdate("u", func(_ context.Context, c *handlers.Invocation) error {
				return c.Writer.AddTransform(func(body map[string]any) error {
					put(body, nil, "spec", "tenants", name, "quota")
					return nil
				})
			}))
			p.handling.IneffectivePatchLabels = &sync.Map{}
			p.settle()
			for i := range 20 {
				name = fmt.Sprintf("t%d", i)
				w.set(int64(5), "spec", "tenants", name, "quota")
				p.settle()
			}
			kept := 0
			p.handling.IneffectivePatchLabels.Range(func(any, any) bool { kept++; return true })
			w.want("kept", 1, kept)
			w.want("lines", 1, strings.Count(strings.Join(w.logLines, "\n"), line))
		}},
		"SubHandlers": {"sub-handlers with changing ids share one entry in memory and one log line", func(w *harness) {
			w.webhook = func(body map[string]any) {
				if at(body, "spec", "enabled") == nil {
					put(body, true, "spec", "enabled")
				}
			}
			name := ""
			p := w.start(onUpdate("u", func(ctx context.Context, c *handlers.Invocation) error {
				return w.steps(nil, sub(name, patches(nil, "spec", "enabled")))(ctx, c)
			}))
			p.handling.IneffectivePatchLabels = &sync.Map{}
			w.set(true, "spec", "enabled")
			p.settle()
			for i := range 20 {
				name = fmt.Sprintf("s%d", i)
				w.set(name, "spec", "field")
				p.settle()
			}
			kept := 0
			p.handling.IneffectivePatchLabels.Range(func(any, any) bool { kept++; return true })
			w.want("kept", 1, kept)
			w.want("lines", 1, strings.Count(strings.Join(w.logLines, "\n"), line))
			w.want("logged", true, w.hasLogged(line, `"handlers"=["u/s0"]`))
		}},
		"NoDefault": {"a field that is removed without a default is not logged", func(w *harness) {
			p := w.start(onCreate("c", patches(nil, "spec", "enabled")))
			p.handling.IneffectivePatchLabels = &sync.Map{}
			w.set(true, "spec", "enabled")
			p.settle()
			w.want("logged", false, w.hasLogged(line))
		}},
	})
}
