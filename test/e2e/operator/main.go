// Command operator is an operator in its own process, which the end-to-end tests kill. It prints one line for each call
// of a handler.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	v1 "github.com/kopf-runtime/kopf-runtime/test/e2e/api/v1"
)

func main() {
	if namespace := os.Getenv("E2E_DIE_IN"); namespace != "" {
		op := newOperator(namespace)
		if err := runUntilStatusWrite(op); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	kopf.Main(newOperator())
}

func newOperator(namespaces ...string) *kopf.Operator {
	op := kopf.New("killed.example.org", kopf.Settings{
		Namespaces: namespaces, AddToScheme: runtime.SchemeBuilder{v1.AddToScheme}, CachedReads: cachedKinds(),
	})
	register(kopf.For(op, &v1.Gadget{}), handlerDuration())
	register(kopf.For(op, &v1.Widget{}), handlerDuration())
	registerReader(kopf.For(op, &v1.Gadget{}))
	registerStormHandlers(kopf.For(op, &v1.Gadget{}), func(g *v1.Gadget) int64 { return int64(g.Spec.Size) })
	return op
}

// saveMargin is longer than saving a result takes.
const saveMargin = 5 * time.Second

// handlerDuration returns how long the second handler runs: E2E_SLOW, or zero.
func handlerDuration() time.Duration {
	slow, _ := time.ParseDuration(os.Getenv("E2E_SLOW"))
	return slow
}

type result struct {
	Call int `json:"call"`
}

func register[T client.Object](objects kopf.Selection[T], slow time.Duration) {
	note := func(c *kopf.Change[T]) {
		fmt.Printf("CALL %s %s retry=%d\n", c.ID, c.Object.GetName(), c.Retry)
		c.SetResult(result{Call: c.Retry + 1})
	}
	quick := objects.MatchingLabels("!flaky,!storm,!reads")
	quick.OnCreate("first", func(_ context.Context, c *kopf.Change[T]) error { note(c); return nil })
	quick.OnCreate("second", func(ctx context.Context, c *kopf.Change[T]) error {
		note(c)
		for _, part := range []time.Duration{min(slow/2, saveMargin), slow} {
			select {
			case <-time.After(part):
				fmt.Printf("WAITED %s %s\n", c.ID, c.Object.GetName())
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	objects.MatchingLabels("!storm").OnUpdate("changed", func(_ context.Context, c *kopf.Change[T]) error {
		fmt.Printf("CALL %s %s %v\n", c.ID, c.Object.GetName(), c.Diff)
		return nil
	})
	objects.MatchingLabels("flaky").OnCreate("flaky", func(_ context.Context, c *kopf.Change[T]) error {
		note(c)
		return kopf.Temporary(fmt.Errorf("not yet"), time.Second)
	}, kopf.Retries(4))
}
