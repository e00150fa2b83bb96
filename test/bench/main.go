// Command bench is the operator by which the framework is compared with others that do the same: it handles
// kopfexamples.kopf.dev, stores status.create_fn and status.update_fn, and, with BENCH_MODE=timers, has a timer for
// every object that does nothing every five seconds. BENCH_WORKERS is the number of workers, 10 by default.
package main

import (
	"cmp"
	"context"
	"os"
	"strconv"
	"time"

	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

type change = kopf.Change[*unstructured.Unstructured]

func main() {
	log.SetLogger(zap.New(zap.Level(zapcore.ErrorLevel)))
	if err := run(); err != nil {
		log.Log.Error(err, "The operator has failed")
		os.Exit(1)
	}
}

func run() error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.QPS, config.Burst = -1, 0
	m, err := ctrl.NewManager(config, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	workers, err := strconv.Atoi(cmp.Or(os.Getenv("BENCH_WORKERS"), "10"))
	if err != nil {
		return err
	}
	op := kopf.New("bench.kopf.dev", kopf.Settings{Queueing: kopf.QueueingSettings{WorkerLimit: workers}})
	register(op, os.Getenv("BENCH_MODE") == "timers")
	if err := op.SetupWithManager(m); err != nil {
		return err
	}
	return m.Start(ctrl.SetupSignalHandler())
}

func register(op *kopf.Operator, timers bool) {
	examples := kopf.ForResource(op, "kopf.dev/v1", "kopfexamples")
	examples.OnCreate("create_fn", func(_ context.Context, c *change) error {
		c.SetResult(map[string]any{"message": "created " + c.Object.GetName()})
		return nil
	})
	examples.OnUpdate("update_fn", func(_ context.Context, c *change) error {
		field := kopf.AtOr(c.Object, "spec.field", "")
		c.SetResult(map[string]any{"seen": field, "ops": len(c.Diff)})
		return nil
	})
	if timers {
		examples.Timer(
			"tick", 5*time.Second, func(context.Context, *kopf.Run[*unstructured.Unstructured]) error { return nil },
		)
		return
	}
	examples.OnDelete("delete_fn", func(context.Context, *change) error { return nil })
}
