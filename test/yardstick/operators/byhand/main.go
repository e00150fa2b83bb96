// Command byhand is the same operator written on plain controller-runtime.
//
//	byhand dynamic|typed changes|timers|restart|latency|pods N
//
// On creation it adds a finalizer, stores a result in the status, and the last-handled spec in an annotation; on an
// update it compares with the annotation, and stores a result; on deletion it removes the finalizer. In timers, each
// object comes again every five seconds; in latency, each update prints the age of the change. With pods, it maintains
// an index of them by node, and prints a line when it has seen all N. Caches keep no managed fields.
package main

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/kopf-runtime/kopf-runtime/test/yardstick/api/v1"
	"github.com/kopf-runtime/kopf-runtime/test/yardstick/operators/program"
	"github.com/kopf-runtime/kopf-runtime/test/yardstick/process"
)

const (
	finalizer  = "byhand.example.org/finalizer"
	annotation = "byhand.example.org/last-handled"
	interval   = 5 * time.Second
)

func main() { os.Exit(program.Main("byhand", run)) }

func run(m manager.Manager, task program.Task) error {
	about := exampleReconciler{client: m.GetClient(), cache: m.GetCache(), scenario: task.Scenario,
		ticks: &atomic.Int64{}}
	var err error
	switch {
	case task.Scenario == "pods":
		err = setupPods(m, task.Objects)
	case task.IsTyped:
		err = setup(m, &v1.KopfExample{}, about.reconcileTyped)
	default:
		err = setup(m, newExample(), about.reconcileDynamic)
	}
	if err != nil {
		return err
	}
	err = m.Start(ctrl.SetupSignalHandler())
	return errors.Join(err, process.WriteFigure(os.Stdout, "ticks", float64(about.ticks.Load())))
}

func setup(m manager.Manager, kind client.Object, reconciler reconcile.Func) error {
	options := controller.Options{MaxConcurrentReconciles: program.Workers}
	return ctrl.NewControllerManagedBy(m).For(kind).WithOptions(options).Complete(reconciler)
}

// exampleReconciler holds the dependencies of both reconcilers.
type exampleReconciler struct {
	client   client.Client
	cache    cache.Cache
	scenario string
	ticks    *atomic.Int64
}

// handleUnchanged handles an object whose spec was already handled.
func (a exampleReconciler) handleUnchanged() (reconcile.Result, error) {
	if a.scenario != "timers" {
		return reconcile.Result{}, nil
	}
	a.ticks.Add(1)
	return reconcile.Result{RequeueAfter: interval}, nil
}

func (a exampleReconciler) patch(ctx context.Context, o, base client.Object) error {
	return client.IgnoreNotFound(a.client.Patch(ctx, o, client.MergeFrom(base)))
}

// handleUpdate runs where a handler of updates would run.
func (a exampleReconciler) handleUpdate(field string) error {
	if a.scenario != "latency" {
		return nil
	}
	return process.WriteLatency(os.Stdout, field, time.Now())
}
