// Command sharding renders the pages of websites. Its replicas share the websites, because each page keeps a core busy.
package main

import (
	"context"
	"fmt"
	"html"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/getting-started/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

func main() {
	op := newOperator()
	kopf.Main(op)
}

func newOperator() *kopf.Operator {
	op := kopf.New("websites.example.org", kopf.Settings{
		AddToScheme: runtime.SchemeBuilder{v1.AddToScheme},
		Sharding:    kopf.ShardingSettings{Shards: 16},     // for up to eight replicas
		Queueing:    kopf.QueueingSettings{WorkerLimit: 1}, // one page at a time
	})
	websites := kopf.For(op, &v1.Website{})
	websites.OnCreate("render", render)
	websites.OnUpdate("render", render)
	return op
}

// render takes 100 ms. It keeps all state on the website, so any replica can handle the next change.
func render(ctx context.Context, c *kopf.Change[*v1.Website]) error {
	log.FromContext(ctx).Info("Rendering", "title", c.Object.Spec.Title)
	select {
	case <-time.After(100 * time.Millisecond): // stands for the work
	case <-ctx.Done(): // the replica ends, or the range moves
		return ctx.Err()
	}
	page := fmt.Sprintf("<h1>%s</h1>", html.EscapeString(c.Object.Spec.Title))
	c.Patch(func(w *v1.Website) { w.Status.Page = page })
	return nil
}
