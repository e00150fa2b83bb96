// Command 10-daemons has a function that runs for as long as its website exists.
package main

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/getting-started/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// Task is one call of a daemon.
type Task = kopf.Task[*v1.Website]

func main() {
	op := newOperator()
	kopf.Main(op)
}

func newOperator() *kopf.Operator {
	op := kopf.New("websites.example.org", kopf.Settings{AddToScheme: runtime.SchemeBuilder{v1.AddToScheme}})
	websites := kopf.For(op, &v1.Website{}).WithLabel("paused", kopf.Absent)
	websites.Daemon("watch", watch)
	return op
}

// watch visits the website every ten seconds, until it must end.
func watch(ctx context.Context, t *Task) error {
	logger := log.FromContext(ctx)
	logger.Info("Started")
	for t.Sleep(10 * time.Second) {
		logger.Info("Visited", "title", t.Latest().Spec.Title)
	}
	logger.Info("Stopped", "why", t.StopReason())
	return nil
}
