// Command 15-timers calls functions at intervals for each object.
package main

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

type Task = kopf.Task[*kopf.Unstructured]

func main() {
	op := kopf.New("timers.kopf.dev")
	register(op)
	kopf.Main(op)
}

func register(op *kopf.Operator) {
	examples := kopf.ForResource(op, "kopfexamples.kopf.dev")
	// Every second, from the start of one call to the start of the next one, with up to a tenth of a second of jitter.
	examples.Timer("probe", time.Second, probe, kopf.Sharp(), kopf.Jitter(0.1))
	// Once after each change, when the object has not changed for two seconds.
	examples.Timer("settle", 0, settle, kopf.Idle(2*time.Second))
	// At once, and then every hour. After an error, every second, with at most five calls.
	examples.Timer("retry", time.Hour, retry, kopf.Retries(5))
}

func probe(ctx context.Context, t *Task) error {
	t.SetResult(map[string]any{"at": time.Now().UTC().Format(time.TimeOnly)})
	log.FromContext(ctx).Info("Probed", "field", field(t.Latest()))
	return nil
}

func settle(ctx context.Context, t *Task) error {
	log.FromContext(ctx).Info("The object has settled", "field", field(t.Latest()))
	return nil
}

func retry(ctx context.Context, t *Task) error {
	if t.Retry < 2 {
		return kopf.Temporary(fmt.Errorf("not yet"), time.Second)
	}
	log.FromContext(ctx).Info("It has worked", "retry", t.Retry)
	return nil
}

func field(o *kopf.Unstructured) string { return kopf.GetFieldOr(o, "spec.field", "") }
