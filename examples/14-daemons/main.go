// Command 14-daemons has functions that run until their object is deleted.
package main

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

type Task = kopf.Task[*kopf.Unstructured]

func main() {
	op := kopf.New("daemons.kopf.dev")
	register(op)
	kopf.Main(op)
}

func register(op *kopf.Operator) {
	examples := kopf.ForResource(op, "kopfexamples.kopf.dev")
	examples.Daemon("watch", watch, kopf.CancelTimeout(10*time.Second))
	examples.WithLabel("paused", kopf.Absent).Daemon("work", work, kopf.CancelBackoff(2*time.Second))
}

// watch compares the newest state of its object with the logged one, ten times a second.
func watch(ctx context.Context, t *Task) error {
	seen := ""
	for {
		if value := field(t.Latest()); value != seen {
			log.FromContext(ctx).Info("The field has another value", "before", seen, "now", value)
			seen = value
			t.TryPatch(func(o *kopf.Unstructured) error { return kopf.SetField(o, "status.watched", value) })
			if err := t.Flush(ctx); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			log.FromContext(ctx).Info("The watch ends", "why", context.Cause(ctx).Error())
			return nil
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// work can clean up: Stopping is closed before its context ends. It does not run while the object is paused.
func work(ctx context.Context, t *Task) error {
	log.FromContext(ctx).Info("The work begins")
	select {
	case <-t.Stopping():
		log.FromContext(ctx).Info("The work is put away in order", "why", t.StopReason().Error())
	case <-ctx.Done():
	}
	return ctx.Err()
}

func field(o *kopf.Unstructured) string { return kopf.GetFieldOr(o, "spec.field", "") }
