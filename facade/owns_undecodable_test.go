package kopf_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// TestUndecodableChild shows that a child that does not fit the Go type is logged, and does not block its owner, the
// other children or an index of the kind.
func TestUndecodableChild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		houses := memapi.Resource{
			Group: "example.org", Version: "v1", Kind: "House", Plural: "houses", Namespaced: true,
		}
		server, noted := memapi.New(), &childCalls{}
		server.Install(widgetResource)
		server.Install(houses)
		server.Put(houses, map[string]any{
			"metadata": map[string]any{"name": "home", "namespace": "ns", "uid": "uid-home"}, "spec": map[string]any{},
		})
		add := func(name string, size any) {
			server.Put(widgetResource, map[string]any{
				"metadata": map[string]any{
					"name": name, "namespace": "ns", "uid": "uid-" + name, "ownerReferences": []any{map[string]any{
						"apiVersion": "example.org/v1", "kind": "House", "name": "home", "uid": "uid-home",
					}},
				},
				"spec": map[string]any{"owner": "ann", "size": size},
			})
		}
		add("bad", "three")
		add("good", int64(3))

		op := kopf.New("test.example.org", kopf.Settings{AddToScheme: runtime.SchemeBuilder{addWidgets}})
		s := kopf.ForResource(op, "houses")
		s.Owns(&Widget{})
		kopf.OnChild(s, "child", func(
			_ context.Context, e *kopf.ChildEvent[*kopf.Unstructured, *Widget],
		) error {
			noted.note("child %s", e.Child.Name)
			return nil
		})
		index := kopf.NewIndex(kopf.For(op, &Widget{}), "sizes", func(
			_ context.Context, w *Widget,
		) (map[string]int32, error) {
			return map[string]int32{w.Name: w.Spec.Size}, nil
		})
		s.OnCreate("create", func(_ context.Context, c *kopf.Change[*kopf.Unstructured]) error {
			noted.note("create %s, %d indexed", c.Object.GetName(), index.Len())
			return nil
		})
		r := facadetest.Start(t, op, facadetest.Against(memapi.Config(server)))
		time.Sleep(10 * time.Minute)
		noted.want(t, "at the start, the other child is reported", "create home, 1 indexed", "child good")
		add("late", int64(4))
		time.Sleep(10 * time.Minute)
		noted.want(t, "a later child is reported", "child late")
		for _, text := range []string{"Cannot call the handler with this object", "Index function failed"} {
			if n := strings.Count(r.Output(), text); n != 1 {
				t.Errorf("%q is logged %d times, want 1:\n%s", text, n, r.Output())
			}
		}
		server.Edit(widgetResource, "ns", "bad", func(o map[string]any) {
			o["spec"] = map[string]any{"owner": "ann", "size": int64(5)}
		})
		time.Sleep(time.Minute)
		noted.want(t, "a corrected child is reported", "child bad")
	})
}
