package main

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// registerStormHandlers registers two handlers for objects with the label "storm"; one of them fails every other time.
// They print when they begin and end.
func registerStormHandlers[T client.Object](objects kopf.Selection[T], seen func(T) int64) {
	either := []kopf.Reason{kopf.ReasonCreate, kopf.ReasonUpdate}
	var calls atomic.Int64
	say := func(what, line string) { _, _ = fmt.Fprintln(os.Stdout, what, line) }
	handle := func(fails func() bool) kopf.ChangeFunc[T] {
		return func(ctx context.Context, c *kopf.Change[T]) error {
			line := fmt.Sprintf("%s %s %d", c.ID, c.Object.GetName(), seen(c.Object))
			say("BEGIN", line)
			select {
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
				say("BROKEN", line)
				return ctx.Err()
			}
			if fails() {
				say("FAILED", line)
				return kopf.Temporary(fmt.Errorf("bad weather"), 100*time.Millisecond)
			}
			say("DONE", line)
			return nil
		}
	}
	stormy := objects.MatchingLabels("storm")
	stormy.On("steady", either, handle(func() bool { return false }))
	stormy.On("shaky", either, handle(func() bool { return calls.Add(1)%2 == 1 }))
}
