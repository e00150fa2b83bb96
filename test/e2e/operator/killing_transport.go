package main

import (
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// runUntilStatusWrite runs the operator until it is about to send the main patch of an object whose status patch it has
// just sent. There it kills its own process, because an external kill would be too late.
func runUntilStatusWrite(op *kopf.Operator) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &killingTransport{next: next} })
	manager, err := ctrl.NewManager(
		config, ctrl.Options{Scheme: runtime.NewScheme(), Metrics: metricsserver.Options{BindAddress: "0"}},
	)
	if err != nil {
		return err
	}
	if err := op.SetupWithManager(manager); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

type killingTransport struct {
	next             http.RoundTripper
	hasPatchedStatus atomic.Bool // a status patch succeeded
}

func (d *killingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodPatch {
		return d.next.RoundTrip(request)
	}
	if !strings.HasSuffix(request.URL.Path, "/status") {
		if d.hasPatchedStatus.Load() {
			_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
			select {}
		}
		return d.next.RoundTrip(request)
	}
	response, err := d.next.RoundTrip(request)
	d.hasPatchedStatus.Store(err == nil && response.StatusCode < 300)
	return response, err
}
