// Command asyncio is a Go form of an operator that uses asyncio of Python.
package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/getting-started/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

var files = []string{"index.html", "feed.xml", "robots.txt"}

// publisher is shared by all calls of all handlers.
type publisher struct {
	uploadSemaphore chan struct{} // a semaphore

	mu         sync.Mutex // Go needs it: handlers run in parallel
	totalSizes map[string]int
}

func main() {
	op := newOperator()
	kopf.Main(op)
}

func newOperator() *kopf.Operator {
	op := kopf.New("websites.example.org", kopf.Settings{AddToScheme: runtime.SchemeBuilder{v1.AddToScheme}})
	p := &publisher{uploadSemaphore: make(chan struct{}, 2), totalSizes: map[string]int{}}
	websites := kopf.For(op, &v1.Website{})
	websites.OnCreate("publish", p.publish)
	websites.Daemon("watch", watch)
	return op
}

func (p *publisher) publish(ctx context.Context, c *kopf.Change[*v1.Website]) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	sizes, errs := make([]int, len(files)), make([]error, len(files))
	var tasks sync.WaitGroup
	for i, file := range files {
		tasks.Go(func() { sizes[i], errs[i] = p.upload(ctx, file) })
	}
	tasks.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	total := p.add(c.Object.Name, sizes)
	c.Patch(func(w *v1.Website) { w.Status.Page = fmt.Sprint(total, " bytes") })
	return nil
}

func (p *publisher) upload(ctx context.Context, file string) (size int, err error) {
	select {
	case p.uploadSemaphore <- struct{}{}:
		defer func() { <-p.uploadSemaphore }()
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	select {
	case <-time.After(time.Second):
		return len(file), nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

func (p *publisher) add(site string, sizes []int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, size := range sizes {
		p.totalSizes[site] += size
	}
	return p.totalSizes[site]
}

func watch(ctx context.Context, r *kopf.Task[*v1.Website]) error {
	defer log.FromContext(ctx).Info("Closing the connection")
	for r.Sleep(10 * time.Second) {
		log.FromContext(ctx).Info("Visited")
	}
	return nil
}
