// Command ours is the contender of this framework.
//
//	ours dynamic|typed changes|timers|restart|latency|pods N
//
// It handles kopfexamples.kopf.dev, with or without a Go type, and stores status.create_fn and status.update_fn; in
// timers, every object has a timer that does nothing every five seconds; in latency, each update prints the age of the
// change. With pods, it maintains an index of them by node, and prints a line when it has seen all N.
package main

import (
	"errors"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	v1 "github.com/kopf-runtime/kopf-runtime/test/yardstick/api/v1"
	"github.com/kopf-runtime/kopf-runtime/test/yardstick/operators/program"
)

func main() { os.Exit(program.Main("ours", run)) }

func run(m manager.Manager, task program.Task) error {
	op := kopf.New("yardstick.kopf.dev", kopf.Settings{Queueing: kopf.QueueingSettings{WorkerLimit: program.Workers}})
	var h handlers
	switch {
	case task.Scenario == "pods":
		registerPods(op, task.Objects)
	case task.IsTyped:
		examples := kopf.For(op, &v1.KopfExample{})
		register(&h, examples, task.Scenario, func(o *v1.KopfExample) string { return o.Spec.Field })
	default:
		examples := kopf.ForResource(op, "kopf.dev/v1", "kopfexamples")
		register(&h, examples, task.Scenario, func(o *unstructured.Unstructured) string {
			return kopf.GetFieldOr(o, "spec.field", "")
		})
	}
	if err := op.SetupWithManager(m); err != nil {
		return err
	}
	return errors.Join(m.Start(ctrl.SetupSignalHandler()), h.writeTicks())
}
