package cluster

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/kopf-runtime/kopf-runtime/test/yardstick/api/v1"
)

const (
	// writers is the number of concurrent requests of the yardstick itself.
	writers = 16
	// overhead is the approximate JSON size of an object without its filler.
	overhead = 100
	filler   = "some payload as people write it "
)

func exampleNamed(i int) *v1.KopfExample {
	return &v1.KopfExample{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("kex-%06d", i), Namespace: Namespace}}
}

// Create creates the objects with numbers from first up to but not including end, with specs of about size bytes.
func (c *Cluster) Create(ctx context.Context, first, end, size int) error {
	return c.each(ctx, "creating", first, end, func(i int) error {
		o := exampleNamed(i)
		o.Labels = map[string]string{"app": "yardstick"}
		o.Spec = v1.Spec{
			Field: "made", Items: []string{"a", "b", "c"},
			Nested: v1.Nested{X: int64(i), Y: strings.Repeat(filler, max(1, (size-overhead)/len(filler)))},
		}
		if err := c.api.Create(ctx, o); err != nil {
			return fmt.Errorf("creating %s: %w", o.Name, err)
		}
		return nil
	})
}

// Change sets spec.field of one object.
func (c *Cluster) Change(ctx context.Context, i int, value string) error {
	return c.patch(ctx, i, fmt.Sprintf(`{"spec":{"field":%q}}`, value))
}

// ChangeAll sets spec.field of all objects before end.
func (c *Cluster) ChangeAll(ctx context.Context, end int, value string) error {
	return c.each(ctx, "changing", 0, end, func(i int) error { return c.Change(ctx, i, value) })
}

// DeleteAll deletes the objects with numbers from first up to but not including end. Objects with finalizers stay until
// these are removed.
func (c *Cluster) DeleteAll(ctx context.Context, first, end int) error {
	return c.each(ctx, "deleting", first, end, func(i int) error { return c.remove(ctx, exampleNamed(i)) })
}

// remove deletes an object by name and ignores that it does not exist.
func (c *Cluster) remove(ctx context.Context, o client.Object, options ...client.DeleteOption) error {
	if err := c.api.Delete(ctx, o, options...); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s: %w", o.GetName(), err)
	}
	return nil
}

// Release removes the finalizers of all objects before end, because no operator runs to do so.
func (c *Cluster) Release(ctx context.Context, end int) error {
	return c.each(ctx, "releasing", 0, end, func(i int) error {
		return c.patch(ctx, i, `{"metadata":{"finalizers":null}}`)
	})
}

func (c *Cluster) patch(ctx context.Context, i int, patch string) error {
	o := exampleNamed(i)
	err := c.api.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(patch)))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("changing %s: %w", o.Name, err)
	}
	return nil
}

// each calls a function for all numbers concurrently until a call fails. It prints the progress every two seconds.
func (c *Cluster) each(ctx context.Context, what string, first, end int, do func(i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	numbers := make(chan int)
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for i := range numbers {
				if err := do(i); err != nil {
					cancel(err)
				}
			}
		})
	}
	said := time.Now()
	for i := first; i < end && ctx.Err() == nil; i++ {
		numbers <- i
		if time.Since(said) > 2*time.Second {
			said = time.Now()
			_, _ = fmt.Fprintf(c.progress, "  %s: %d of %d\n", what, i-first, end-first)
		}
	}
	close(numbers)
	group.Wait()
	return context.Cause(ctx)
}
