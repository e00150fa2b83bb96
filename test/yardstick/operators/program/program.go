package program

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1 "github.com/kopf-runtime/kopf-runtime/test/yardstick/api/v1"
)

// Workers is the number of objects that are handled concurrently, the same for all contenders.
const Workers = 10

// Task is the task of a contender: with or without a Go type, the scenario, and the number of objects.
type Task struct {
	IsTyped  bool
	Scenario string
	Objects  int
}

// Main runs a contender on a manager and returns the exit code of the process.
func Main(name string, run func(m manager.Manager, task Task) error) int {
	log.SetLogger(zap.New(zap.Level(zapcore.ErrorLevel)))
	if len(os.Args) != 4 {
		fmt.Fprintf(os.Stderr, "usage: %s dynamic|typed SCENARIO N\n", name)
		return 2
	}
	if err := start(run); err != nil {
		log.Log.Error(err, "The operator has failed")
		return 1
	}
	return 0
}

func start(run func(manager.Manager, Task) error) error {
	count, err := strconv.Atoi(os.Args[3])
	if err != nil {
		return fmt.Errorf("reading the number of objects: %w", err)
	}
	m, err := newManager()
	if err != nil {
		return err
	}
	return run(m, Task{IsTyped: os.Args[1] == "typed", Scenario: os.Args[2], Objects: count})
}

// newManager creates a manager whose cache drops managed fields.
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
	return ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
	})
}
