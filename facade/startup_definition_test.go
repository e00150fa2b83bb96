package kopf_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// TestDefinitionMadeAtStartup shows that an operator that creates its own definition at startup serves the objects
// without a restart, even after the definition was deleted and created again.
func TestDefinitionMadeAtStartup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, noted := memapi.New(), &childCalls{}
		definition := func() *unstructured.Unstructured {
			crd := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(movers), &crd.Object); err != nil {
				t.Fatal(err)
			}
			return crd
		}
		define := func(ctx context.Context, c client.Client) error {
			if err := c.Create(ctx, definition()); !apierrors.IsAlreadyExists(err) {
				return err
			}
			return nil
		}
		op := kopf.New("test.example.org")
		op.OnStartup("define", func(ctx context.Context, s *kopf.Activity) error { return define(ctx, s.Client) })
		s := kopf.ForResource(op, "movers.example.org")
		note := func(_ context.Context, c *kopf.Change[*kopf.Unstructured]) error {
			noted.note("%s %s", c.Reason, c.Object.GetName())
			return nil
		}
		s.On("make", kopf.CreateUpdateResume(), note)
		people := clientOf(t, server)
		create := func(name string) {
			o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v2", "kind": "Mover"}}
			o.SetNamespace("ns")
			o.SetName(name)
			if err := people.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}

		r := facadetest.Start(t, op, facadetest.Against(memapi.Config(server)))
		r.Ready()
		create("a")
		noted.want(t, "an object of the new definition is handled at once", "create a")

		if err := people.Delete(t.Context(), definition()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		noted.want(t,
			"the deletion of the definition calls no handler: the in-memory server removes the objects at once")

		if err := define(t.Context(), people); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		create("b")
		noted.want(t, "an object of the restored definition is handled", "create b")
	})
}
