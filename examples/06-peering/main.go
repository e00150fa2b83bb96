// Command 06-peering is an operator of which several may run: one acts, the others pause.
package main

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

type Change = kopf.Change[*kopf.Unstructured]

func main() {
	// The handlers do not deal with peers. The operator looks for a peering object of its own name; without one, it
	// ignores other operators.
	op := kopf.New("peering.kopf.dev", kopf.Settings{Peering: kopf.PeeringSettings{
		Lifetime: 15 * time.Second, // after which another operator takes over if this one is killed
	}})
	examples := kopf.ForResource(op, "kopf.dev/v1", "kopfexamples")
	examples.On("work", kopf.CreateUpdateResume(), work)
	examples.OnDelete("forget", forget)
	kopf.Main(op)
}

// work takes some time. An operator that has to pause meanwhile lets the handler finish, and the next operator waits
// for that. If the handler runs longer than Peering.PauseTimeout, its context is cancelled with kopf.ErrPaused as the
// cause.
func work(ctx context.Context, c *Change) error {
	log.FromContext(ctx).Info("Working", "object", c.Object.GetName(), "changes", len(c.Diff))
	select {
	case <-time.After(2 * time.Second):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	log.FromContext(ctx).Info("Worked", "object", c.Object.GetName())
	return nil
}

func forget(ctx context.Context, c *Change) error {
	log.FromContext(ctx).Info("Forgot", "object", c.Object.GetName())
	return nil
}
