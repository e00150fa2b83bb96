// Command 01-minimal is the smallest useful operator: one kind, three functions, no Go types.
package main

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

type Change = kopf.Change[*kopf.Unstructured]

func main() {
	op := kopf.New("minimal.kopf.dev")

	examples := kopf.ForResource(op, "kopf.dev/v1", "kopfexamples")
	examples.OnCreate("create_fn", created)
	examples.OnUpdate("update_fn", updated)
	examples.OnDelete("delete_fn", deleted)

	kopf.Main(op)
}

// created leaves a result on the object, in status.create_fn; kubectl get shows its message in a column.
func created(ctx context.Context, c *Change) error {
	log.FromContext(ctx).Info("Created", "spec", c.Object.Object["spec"])
	c.SetResult(map[string]any{"message": fmt.Sprintf("%s was created", c.Object.GetName())})
	return nil
}

// updated gets the changes since the object was last handled, seconds or weeks ago.
func updated(ctx context.Context, c *Change) error {
	for _, item := range c.Diff {
		log.FromContext(ctx).Info("Updated", "change", item.String())
	}
	return nil
}

// deleted runs before the object is gone: a finalizer holds it until then.
func deleted(ctx context.Context, c *Change) error {
	log.FromContext(ctx).Info("Deleted", "object", c.Object.GetName())
	return nil
}
