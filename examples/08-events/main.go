// Command 08-events handles every raw event of its objects, as the API server sends them.
package main

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

type Event = kopf.WatchEvent[*kopf.Unstructured]

func main() {
	op := kopf.New("events.kopf.dev")
	register(op)
	kopf.Main(op)
}

func register(op *kopf.Operator) {
	examples := kopf.ForResource(op, "kopfexamples")
	examples.OnEvent("seen", seen)
	examples.MatchingLabels("somelabel").OnEvent("labelled", labelled)
}

func seen(ctx context.Context, e *Event) error {
	kind := string(e.Type)
	if e.Type == kopf.WatchEventListed {
		kind = "(listed)"
	}
	log.FromContext(ctx).Info("Seen "+kind, "field", field(e.Object))
	return nil
}

// labelled returns an error, which is only logged: event handlers are not retried.
func labelled(context.Context, *Event) error { return errors.New("this is of no consequence") }

func field(o *kopf.Unstructured) string { return kopf.GetFieldOr(o, "spec.field", "") }
