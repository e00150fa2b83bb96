// Command 04-events posts Kubernetes events about its work, which kubectl shows beside the object.
package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

type Change = kopf.Change[*kopf.Unstructured]

func main() {
	op := kopf.New("events.kopf.dev", kopf.Settings{
		// Warnings and errors in the log of handlers are posted as well.
		Posting: kopf.PostingSettings{Loggers: true, Level: slog.LevelWarn},
	})
	register(op)
	kopf.Main(op)
}

func register(op *kopf.Operator) {
	examples := kopf.ForResource(op, "kopf.dev/v1", "kopfexamples")
	examples.OnCreate("post", post)
	examples.OnCreate("fail", fail, kopf.Retries(2), kopf.Backoff(time.Second))
	examples.OnUpdate("repeat", repeat)
	kopf.For(op, &corev1.Event{}).When(byUs).OnEvent("seen", seen)
}

// post sends all kinds of events and does not wait for them: a handler does not fail if an event cannot be posted.
func post(_ context.Context, c *Change) error {
	c.Event("Normal", "Arrived", "The object is here")
	c.Info("Silent", "This is not logged, because the level is that of warnings")
	c.Warn("Careful", "This is a warning")
	c.Exception("", "Something was not there:", &NotFoundError{"the plans"})

	plans := &corev1.ConfigMap{}
	plans.Namespace, plans.Name = c.Object.GetNamespace(), "plans"
	c.EventRecorderFor(plans).Event("Normal", "Missed", "An example asks for it")
	return nil
}

// fail returns an error, which the framework logs and posts as an event: users see why the object makes no progress.
func fail(context.Context, *Change) error { return errors.New("the disk is full") }

// repeat posts the same text five times: the result is one event with a count.
func repeat(_ context.Context, c *Change) error {
	for range 5 {
		c.Warn("Repeated", "The same as before")
	}
	return nil
}

// byUs selects the events of this operator.
func byUs(_ context.Context, e *corev1.Event) bool { return e.Source.Component == "events.kopf.dev" }

// seen logs the fields that kubectl shows.
func seen(ctx context.Context, e *kopf.WatchEvent[*corev1.Event]) error {
	o := e.Object
	log.FromContext(ctx).Info("Seen", "about", o.InvolvedObject.Kind+"/"+o.InvolvedObject.Name,
		"eventType", o.Type, "reason", o.Reason, "text", o.Message, "count", o.Count)
	return nil
}

// NotFoundError is an error with a type that names the problem: an event without a reason gets the name of this type.
type NotFoundError struct{ subject string }

func (e *NotFoundError) Error() string { return e.subject + " are not to be found" }
