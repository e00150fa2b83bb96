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

type Change = kopf.Change[*kopf.Unstructured]

func main() {
	op := kopf.New("subhandlers.kopf.dev")
	register(op)
	kopf.Main(op)
}

func register(op *kopf.Operator) {
	examples := kopf.ForResource(op, "kopfexamples.kopf.dev")
	examples.On("items", []kopf.Reason{kopf.ReasonCreate, kopf.ReasonUpdate}, items)
}

// items declares one sub-handler for each item of the object, and one for the report. It is called again until all of
// them are finished, so it only declares the work and does not do it.
func items(ctx context.Context, c *Change) error {
	list, err := kopf.GetField[[]string](c.Object, "spec.items")
	if err != nil && !errors.Is(err, kopf.ErrNoValue) {
		return kopf.Permanent(err)
	}
	log.FromContext(ctx).Info("There is something to do", "items", len(list))
	for _, item := range list {
		c.Sub(item, prepare(item))
	}
	c.Sub("report", report(c, list), kopf.AfterFinished(list...))
	return nil
}

// prepare has two steps, which run one after the other. It succeeds when both steps have, and fails if one of them
// fails.
func prepare(item string) kopf.ChangeFunc[*kopf.Unstructured] {
	return func(ctx context.Context, c *Change) error {
		c.Sub("check", check(item), kopf.After("fetch"))
		c.Sub("fetch", fetch(item), kopf.Retries(3))
		if err := c.RunSubs(ctx); err != nil {
			return err
		}
		for _, step := range []string{"fetch", "check"} {
			if outcome := c.Outcome(step); outcome.State == kopf.SubFailed {
				return kopf.Permanent(fmt.Errorf("%s: %s", step, outcome.Message))
			}
		}
		log.FromContext(ctx).Info("Prepared", "item", item)
		c.SetResult(item + " is ready")
		return nil
	}
}

// fetch succeeds for the second item at the second attempt: the other items do not wait for it and are not repeated.
// For the third item, it always fails.
func fetch(item string) kopf.ChangeFunc[*kopf.Unstructured] {
	return func(ctx context.Context, c *Change) error {
		switch {
		case item == "item2" && c.Retry == 0:
			return kopf.Temporary(fmt.Errorf("not there yet"), time.Second)
		case item == "item3":
			return kopf.Permanent(fmt.Errorf("there is no such item"))
		}
		log.FromContext(ctx).Info(fmt.Sprintf("Fetched %s at attempt %d", item, c.Retry+1))
		return nil
	}
}

// check is called only for items that were fetched.
func check(item string) kopf.ChangeFunc[*kopf.Unstructured] {
	return func(ctx context.Context, _ *Change) error {
		log.FromContext(ctx).Info("Checked", "item", item)
		return nil
	}
}

// report logs the outcome of each item. It reads the outcomes from the change of the parent handler.
func report(of *Change, list []string) kopf.ChangeFunc[*kopf.Unstructured] {
	return func(ctx context.Context, _ *Change) error {
		for _, item := range list {
			outcome := of.Outcome(item)
			log.FromContext(ctx).Info("Reporting", "item", item, "state", outcome.State, "text", outcome.Message)
		}
		return nil
	}
}
