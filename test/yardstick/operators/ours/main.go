// Command ours is the contender of this framework.
//
//	ours dynamic|typed changes|timers|restart|latency|pods N
//
// It handles kopfexamples.kopf.dev, with or without a Go type, and stores status.create_fn and status.update_fn; in
// timers, every object has a timer that does nothing every five seconds; in latency, each update tells how long after
// the change it came. With pods, it has an index of them by node, and tells when it has seen all N.
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	v1 "github.com/kopf-runtime/kopf-runtime/test/yardstick/api/v1"
)

// workers is how many handlers may run at once, as many as by hand.
const workers = 10

func main() {
	log.SetLogger(zap.New(zap.Level(zapcore.ErrorLevel)))
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: ours dynamic|typed SCENARIO N")
		os.Exit(2)
	}
	if err := run(os.Args[1] == "typed", os.Args[2], os.Args[3]); err != nil {
		log.Log.Error(err, "The operator has failed")
		os.Exit(1)
	}
}

func run(typed bool, scenario, objects string) error {
	count, err := strconv.Atoi(objects)
	if err != nil {
		return fmt.Errorf("reading the number of objects: %w", err)
	}
	m, err := newManager()
	if err != nil {
		return err
	}
	op := kopf.New("yardstick.kopf.dev", kopf.Settings{Queueing: kopf.QueueingSettings{WorkerLimit: workers}})
	var h handlers
	switch {
	case scenario == "pods":
		registerPods(op, count)
	case typed:
		examples := kopf.For(op, &v1.KopfExample{})
		register(&h, examples, scenario, func(o *v1.KopfExample) string { return o.Spec.Field })
	default:
		examples := kopf.ForResource(op, "kopf.dev/v1", "kopfexamples")
		register(&h, examples, scenario, func(o *unstructured.Unstructured) string {
			return kopf.AtOr(o, "spec.field", "")
		})
	}
	if err := op.SetupWithManager(m); err != nil {
		return err
	}
	return errors.Join(m.Start(ctrl.SetupSignalHandler()), h.tellTicks())
}

func newManager() (manager.Manager, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = -1, 0
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	return ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
}
