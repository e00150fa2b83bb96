// Command 07-subhandlers divides the work for an object into parts, each with progress of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

type Change = kopf.Change[kopf.Dynamic]

func main() {
	op := kopf.New("subhandlers.kopf.dev")
	register(op)
	kopf.Main(op)
}

func register(op *kopf.Operator) {
	examples := kopf.ForResource(op, "kopfexamples.kopf.dev")
	examples.On("items", []kopf.Reason{kopf.ReasonCreate, kopf.ReasonUpdate}, items)
}

// items has one sub-handler for each item of the object. It is called again as long as one of them is not finished, so
// it only says what there is to do.
func items(ctx context.Context, c *Change) error {
	list, err := kopf.At[[]string](c.Object, "spec.items")
	if err != nil && !errors.Is(err, kopf.ErrNoValue) {
		return kopf.Permanent(err)
	}
	log.FromContext(ctx).Info("There is something to do", "items", len(list))
	for _, item := range list {
		c.Sub(item, prepare(item))
	}
	return nil
}

// prepare is two steps: the first one is run on the spot, and the second one only when that is done.
func prepare(item string) kopf.ChangeFunc[kopf.Dynamic] {
	return func(ctx context.Context, c *Change) error {
		c.Sub("fetch", fetch(item), kopf.Retries(3))
		if err := c.RunSubs(ctx); err != nil {
			return err
		}
		log.FromContext(ctx).Info("Prepared", "item", item)
		c.SetResult(item + " is ready")
		return nil
	}
}

// fetch of the second item works at the second attempt: the others do not wait for it, and are not repeated for it.
func fetch(item string) kopf.ChangeFunc[kopf.Dynamic] {
	return func(ctx context.Context, c *Change) error {
		if item == "item2" && c.Retry == 0 {
			return kopf.Temporaryf(time.Second, "not there yet")
		}
		log.FromContext(ctx).Info(fmt.Sprintf("Fetched %s at attempt %d", item, c.Retry+1))
		return nil
	}
}
