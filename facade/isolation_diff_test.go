package kopf_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// TestSortingADiffChangesNothing shows that a handler that sorts the values of its diff does not change the object, and
// that a later edit back to the former order is still detected.
func TestSortingADiffChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &tamperer{t: t}
		v.server = memapi.New()
		v.server.Install(widgetResource)
		var err error
		if v.user, err = client.New(memapi.Config(v.server), client.Options{}); err != nil {
			t.Fatal(err)
		}
		op := kopf.New("test.example.org")
		seen := func(_ context.Context, c *Raw) error {
			v.note(c.ID, c.Object.Object["spec"])
			for _, item := range c.Diff {
				tree, _ := item.New.(map[string]any)
				list, ok := diff.ResolvePath(tree, diff.Path{"spec", "tags"})
				if !ok {
					list = item.New
				}
				if tags, ok := list.([]any); ok {
					slices.SortFunc(tags, func(a, b any) int { return len(fmt.Sprint(a)) - len(fmt.Sprint(b)) })
				}
			}
			return nil
		}
		widgets := kopf.ForResource(op, "example.org/v1", "widgets")
		widgets.OnCreate("create", seen)
		widgets.OnUpdate("update", seen)
		defer operate(t, v.server, op, logr.Discard())()
		object := &unstructured.Unstructured{Object: body(map[string]any{"tags": []any{"long", "s"}})}
		object.SetNamespace("default")
		object.SetUID("")
		object.SetResourceVersion("")
		if err := v.user.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		for _, tags := range []string{`["s","long"]`, `["long","s"]`} {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"tags":`+tags+`}}`))
			if err := v.user.Patch(t.Context(), object, patch); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
		}
		synctest.Wait()
		want := []string{
			`create [{"tags":["long","s"]}]`, `update [{"tags":["s","long"]}]`, `update [{"tags":["long","s"]}]`,
		}
		if d := cmp.Diff(want, v.notes); d != "" {
			t.Errorf("each edit must be detected, in its own order: -want, +got:\n%s", d)
		}
	})
}
