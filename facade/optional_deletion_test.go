package kopf_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// TestOptionalDeletionGetsTheLastState shows that an optional deletion handler of an object that has disappeared gets
// the last known state. Its patches have no effect and cause no error. With AsKopf, it is not called.
func TestOptionalDeletionGetsTheLastState(t *testing.T) {
	for name, tc := range map[string]struct {
		settings []kopf.Settings
		want     []string
	}{
		"Default": {nil, []string{"delete w1 of ben, latest ben, before ann, sub-handlers: false"}},
		"AsKopf":  {[]kopf.Settings{kopf.AsKopf()}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			onWidgets(t, func(t *testing.T, server *memapi.Server) {
				op := kopf.New("test.example.org", tc.settings...)
				var got []string
				widgets := kopf.For(op, &Widget{})
				widgets.OnUpdate(
					"keep",
					func(context.Context, *Change) error { return kopf.Permanent(fmt.Errorf("refused")) },
				)
				widgets.OnDelete("gone", func(ctx context.Context, c *Change) error {
					owner, latest := c.Object.Spec.Owner, c.Latest()
					c.Patch(func(w *Widget) { w.Spec.Owner = "eve" })
					subs := c.RunSubs(ctx) == nil
					got = append(got, fmt.Sprintf("%s %s of %s, latest %s, before %s, sub-handlers: %v", c.Reason,
						c.Object.Name, owner, latest.Spec.Owner, c.Old.Spec.Owner, subs))
					return nil
				}, kopf.Optional())
				_, _, stop := operateServing(t, server, op)
				time.Sleep(5 * time.Second)
				server.Put(widgetResource, map[string]any{
					"metadata": map[string]any{"name": "w1", "namespace": "ns"}, "spec": map[string]any{"owner": "ann"},
				})
				time.Sleep(5 * time.Second)
				server.Edit(widgetResource, "ns", "w1",
					func(o map[string]any) { o["spec"] = map[string]any{"owner": "ben"} })
				server.Delete(widgetResource, "ns", "w1")
				time.Sleep(5 * time.Second)
				stop()
				if d := cmp.Diff(tc.want, got); d != "" {
					t.Errorf("calls of the deletion handler: -want, +got:\n%s", d)
				}
			})
		})
	}
}
