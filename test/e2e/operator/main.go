// Command operator is an operator in its own process, which the end-to-end tests kill. It prints one line for each call
// of a handler.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	v1 "github.com/kopf-runtime/kopf-runtime/test/e2e/api/v1"
)

func main() {
	op := kopf.New("killed.example.org", kopf.Settings{
		AddToScheme: runtime.SchemeBuilder{v1.AddToScheme}, CachedReads: cachedKinds(),
	})
	register(kopf.For(op, &v1.Gadget{}))
	registerReader(kopf.For(op, &v1.Gadget{}))
	registerStormHandlers(kopf.For(op, &v1.Gadget{}), func(g *v1.Gadget) int64 { return int64(g.Spec.Size) })
	kopf.Main(op)
}

type result struct {
	Call int `json:"call"`
}

// register registers two handlers, the second of which runs for E2E_SLOW.
func register(objects kopf.Selection[*v1.Gadget]) {
	slow, _ := time.ParseDuration(os.Getenv("E2E_SLOW"))
	note := func(c *kopf.Change[*v1.Gadget]) {
		fmt.Printf("CALL %s %s\n", c.ID, c.Object.GetName())
		c.SetResult(result{Call: c.Retry + 1})
	}
	quick := objects.MatchingLabels("!storm,!reads")
	quick.OnCreate("first", func(_ context.Context, c *kopf.Change[*v1.Gadget]) error { note(c); return nil })
	quick.OnCreate("second", func(ctx context.Context, c *kopf.Change[*v1.Gadget]) error {
		note(c)
		select {
		case <-time.After(slow):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}
