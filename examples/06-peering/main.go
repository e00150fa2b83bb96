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
	// Nothing of the handlers is about peers. The operator looks for a peering object of its own name; without one, it
	// acts without regard to others.
	op := kopf.New("peering.kopf.dev", kopf.Settings{Peering: kopf.PeeringSettings{
		Lifetime: 15 * time.Second, // after which another one follows if this one is killed
	}})
	examples := kopf.ForResource(op, "kopf.dev/v1", "kopfexamples")
	examples.On("work", kopf.CreateUpdateResume(), work)
	examples.OnDelete("forget", forget)
	kopf.Main(op)
}

// work takes some time. An operator that has to pause meanwhile lets it finish, and the next one waits for that. Only
// what takes longer than Peering.PauseTimeout is told by its context, with kopf.ErrPaused as its cause.
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
