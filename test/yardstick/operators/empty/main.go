// Command empty is an empty manager of controller-runtime. It shows the cost of a Go program that connects to a cluster
// and does nothing.
package main

import (
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	log.SetLogger(zap.New())
	if err := run(); err != nil {
		log.Log.Error(err, "The manager has failed")
		os.Exit(1)
	}
}

func run() error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	m, err := ctrl.NewManager(config, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	return m.Start(ctrl.SetupSignalHandler())
}
