package kopf_test

import (
	"context"
	"testing"
	"time"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// TestDeletionOfWhatDoesNotDecode shows that an object that does not fit its Go type, for example after a change of
// the type, can be deleted: the delete handler gets the fields that decode.
func TestDeletionOfWhatDoesNotDecode(t *testing.T) {
	onWidgets(t, func(t *testing.T, server *memapi.Server) {
		op := kopf.New("test.example.org")
		widgets := kopf.For(op, &Widget{})
		var created, deleted []string
		widgets.OnCreate("made", func(_ context.Context, c *Change) error {
			created = append(created, c.Object.Name)
			return nil
		})
		widgets.OnDelete("gone", func(_ context.Context, c *Change) error {
			deleted = append(deleted, c.Object.Name+" of "+c.Object.Spec.Owner)
			return nil
		})
		_, _, stop := operateServing(t, server, op)
		defer stop()
		time.Sleep(5 * time.Second)
		server.Put(widgetResource, map[string]any{
			"metadata": map[string]any{"name": "w1", "namespace": "ns"},
			"spec":     map[string]any{"owner": "ann", "size": "three"},
		})
		time.Sleep(5 * time.Second)
		server.Delete(widgetResource, "ns", "w1")
		time.Sleep(5 * time.Second)
		if left := server.Object(widgetResource, "ns", "w1"); left != nil {
			t.Errorf("the object is released: got %v", left)
		}
		if len(created) != 0 || len(deleted) != 1 || deleted[0] != "w1 of ann" {
			t.Errorf("only the delete handler is called for an object that does not decode: got %q, %q",
				created, deleted)
		}
	})
}
