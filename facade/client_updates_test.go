package kopf_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

const erasedFieldsMessage = "Update by the client erased fields"

// updateSize writes the object with another size, once.
func updateSize(ctx context.Context, c client.Client, w *Widget) error {
	if w.Spec.Size == 7 {
		return nil
	}
	w.Spec.Size = 7
	return c.Update(ctx, w)
}

// TestUpdatesThatEraseFields shows that updates of an object with a Go type that lacks fields are logged, once for each
// handler of all families.
func TestUpdatesThatEraseFields(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	const spec = `fields="[spec.novel spec.parts.novel]"`
	type selection = kopf.Selection[*Widget]
	onUpdate := func(act func(ctx context.Context, c *Change) error) func(s selection) {
		return func(s selection) { s.OnUpdate("h", act) }
	}
	for name, tc := range map[string]struct {
		reason   string
		register func(s selection)
		want     []string // in one line for each handler
	}{
		"Change": {"an update of c.Object is logged", onUpdate(func(ctx context.Context, c *Change) error {
			return updateSize(ctx, c.Client, c.Object)
		}), []string{spec + " handler=h"}},
		"Sub": {"an update by a sub-handler is logged once, for the sub-handler",
			onUpdate(func(ctx context.Context, c *Change) error {
				c.Sub("inner",
					func(ctx context.Context, c *Change) error { return updateSize(ctx, c.Client, c.Object) })
				return c.RunSubs(ctx)
			}), []string{spec + " handler=h/inner"}},
		"Read": {"an update of an object that the client has read is logged",
			onUpdate(func(ctx context.Context, c *Change) error {
				read := &Widget{}
				if err := c.Client.Get(ctx, client.ObjectKeyFromObject(c.Object), read); err != nil {
					return err
				}
				return updateSize(ctx, c.Client, read)
			}), []string{spec + " handler=h"}},
		"Event": {"an update by an event handler is logged", func(s selection) {
			s.OnEvent("e", func(ctx context.Context, e *kopf.WatchEvent[*Widget]) error {
				if e.Object.Spec.Size == 1 {
					return nil
				}
				return updateSize(ctx, e.Client, e.Object)
			})
		}, []string{spec + " handler=e"}},
		"Timer": {"an update by a timer is logged", func(s selection) {
			s.Timer("t", time.Second, func(ctx context.Context, r *Run) error {
				return updateSize(ctx, r.Client, r.Latest())
			}, kopf.InitialDelay(time.Second)) // after the finalizer is written
		}, []string{spec + " handler=t"}},
		"Status": {"an update of the status erases only fields of the status",
			onUpdate(func(ctx context.Context, c *Change) error {
				c.Object.Status.Host = "other"
				return c.Client.Status().Update(ctx, c.Object)
			}), []string{"fields=[status.novel] handler=h"}},

		"Patch": {"a patch erases nothing, because it only writes differences",
			onUpdate(func(_ context.Context, c *Change) error {
				c.Patch(func(w *Widget) { w.Spec.Size = 7 })
				return nil
			}), nil},
		"DryRun": {"a dry run erases nothing", onUpdate(func(ctx context.Context, c *Change) error {
			c.Object.Spec.Size = 7
			return client.NewDryRunClient(c.Client).Update(ctx, c.Object)
		}), nil},
		"Conflict": {"a refused update erases nothing", onUpdate(func(ctx context.Context, c *Change) error {
			c.Object.Spec.Size, c.Object.ResourceVersion = 7, "1"
			_ = c.Client.Update(ctx, c.Object)
			return nil
		}), nil},
		"Raw": {"an update without a Go type erases nothing", onUpdate(func(ctx context.Context, c *Change) error {
			read := &rawObject{}
			read.SetGroupVersionKind(widgets.WithKind("Widget"))
			if err := c.Client.Get(ctx, client.ObjectKeyFromObject(c.Object), read); err != nil {
				return err
			}
			read.SetLabels(map[string]string{"a": "b"})
			return c.Client.Update(ctx, read)
		}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, line := range runUpdates(t, tc.register) {
				i := slices.IndexFunc(tc.want, func(want string) bool {
					fields, handler, _ := strings.Cut(want, " handler=")
					return strings.Contains(line, "namespace=ns name=w1 ") &&
						strings.Contains(line, " handler="+handler+" ") && strings.Contains(line, " "+fields+" ")
				})
				if i < 0 {
					t.Errorf("%s: %s", tc.reason, line)
					continue
				}
				tc.want = slices.Delete(tc.want, i, i+1)
			}
			for _, want := range tc.want {
				t.Errorf("%s: no line has %s", tc.reason, want)
			}
		})
	}
}

// runUpdates runs an operator with an object that has fields that the Go type lacks, edits the object twice, and
// returns the lines about erased fields.
func runUpdates(t *testing.T, register func(s kopf.Selection[*Widget])) (lines []string) {
	synctest.Test(t, func(t *testing.T) {
		server, kind := memapi.New(), widgetResource
		kind.StatusSubresource = true
		server.Install(kind)
		spec := map[string]any{
			"owner": "", "big": int64(0), "weight": "1000m", "novel": int64(0),
			"parts": []any{map[string]any{"name": "a", "novel": "x"}, map[string]any{"name": "b", "novel": "y"}},
		}
		object := body(spec)
		object["status"] = map[string]any{"ready": false, "novel": true}
		server.Put(kind, object)
		op := kopf.New("test.example.org", kopf.Settings{AddToScheme: runtime.SchemeBuilder{addWidgets}})
		register(kopf.For(op, &Widget{}))
		kopf.For(op, &Widget{}).OnUpdate("other", succeed)
		r := facadetest.Start(t, op, facadetest.Against(memapi.Config(server)))
		r.Ready()
		time.Sleep(5 * time.Second)
		for size := range int64(2) {
			server.Edit(kind, "ns", "w1", func(o map[string]any) {
				changed := maps.Clone(spec)
				changed["size"] = 2 + size
				o["spec"] = changed
			})
			time.Sleep(10 * time.Second)
		}
		if err := r.Stop(); err != nil {
			t.Error(err)
		}
		lines = linesWith(strings.Split(r.Output(), "\n"), erasedFieldsMessage)
	})
	return lines
}
