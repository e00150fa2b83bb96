// Command 11-timers calls functions at intervals for each website.
package main

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/getting-started/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// Task is one call of a timer.
type Task = kopf.Task[*v1.Website]

func main() {
	op := newOperator()
	kopf.Main(op)
}

func newOperator() *kopf.Operator {
	op := kopf.New("websites.example.org", kopf.Settings{AddToScheme: runtime.SchemeBuilder{v1.AddToScheme}})
	websites := kopf.For(op, &v1.Website{})
	// At once, and then every minute.
	websites.Timer("visit", time.Minute, visit)
	// Once after each change, when the website has not changed for 20 seconds.
	websites.Timer("index", 0, index, kopf.Idle(20*time.Second))
	// After 5 seconds, and then every hour. After an error, the next call follows after 15 seconds.
	websites.Timer("backup", time.Hour, backup,
		kopf.InitialDelay(5*time.Second), kopf.Backoff(15*time.Second), kopf.Retries(5))
	return op
}

func visit(ctx context.Context, t *Task) error {
	log.FromContext(ctx).Info("Visited", "title", t.Object.Spec.Title)
	return nil
}

func index(ctx context.Context, t *Task) error {
	log.FromContext(ctx).Info("Indexed", "title", t.Object.Spec.Title)
	return nil
}

func backup(ctx context.Context, t *Task) error {
	if t.Retry == 0 {
		return errors.New("the storage is busy")
	}
	log.FromContext(ctx).Info("Saved a backup")
	return nil
}
