// Command cmd is the manager of a kubebuilder project that uses the facade. Comments mark the added lines.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	webappv1 "github.com/kopf-runtime/kopf-runtime/examples/kubebuilder/api/v1"
	"github.com/kopf-runtime/kopf-runtime/examples/kubebuilder/internal/controller"
	webhookv1 "github.com/kopf-runtime/kopf-runtime/examples/kubebuilder/internal/webhook/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	// +kubebuilder:scaffold:imports
)

var (
	scheme   = runtime.NewScheme()
	setupLog = ctrl.Log.WithName("setup")
)

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(webappv1.AddToScheme(scheme))
	// +kubebuilder:scaffold:scheme
}

func main() {
	if err := run(); err != nil {
		setupLog.Error(err, "The manager has failed")
		os.Exit(1)
	}
}

func run() error {
	var metricsAddr, probeAddr, certPath, webhookURL string
	var webhookPort int
	var leaderElection bool
	flag.StringVar(&metricsAddr, "metrics-bind-address", "0", "Where metrics are served; 0 is nowhere.")
	flag.StringVar(&probeAddr, "health-probe-bind-address", ":8081", "Where probes are answered.")
	flag.BoolVar(&leaderElection, "leader-elect", false, "Elect a leader among several managers: only one is active.")
	flag.StringVar(&certPath, "webhook-cert-path", "", "The directory with tls.crt, tls.key and ca.crt.")
	flag.IntVar(&webhookPort, "webhook-port", webhook.DefaultPort, "Where webhooks are served.")
	flag.StringVar(&webhookURL, "webhook-url", "", "Where the API server finds them, if not by the Service.")
	logging := zap.Options{Development: true}
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))

	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: metricsAddr}, HealthProbeBindAddress: probeAddr,
		LeaderElection: leaderElection, LeaderElectionID: "f2a1c0de.example.org",
		WebhookServer: webhook.NewServer(webhook.Options{Port: webhookPort, CertDir: certPath}),
	})
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}

	reconciler := &controller.GuestbookReconciler{Client: mgr.GetClient(), Scheme: mgr.GetScheme()}
	if err := reconciler.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("setting up the controller of guestbooks: %w", err)
	}
	webhooks := os.Getenv("ENABLE_WEBHOOKS") != "false"
	if webhooks {
		if err := webhookv1.SetupGuestbookWebhookWithManager(mgr); err != nil {
			return fmt.Errorf("setting up the webhooks of guestbooks: %w", err)
		}
	}
	// +kubebuilder:scaffold:builder

	// The facade begins here ...
	var settings kopf.Settings
	if webhooks {
		settings.Admission = controller.AdmissionSettings(webhookURL, filepath.Join(certPath, "ca.crt"))
	}
	op := kopf.New("guestbooks.example.org", settings)
	controller.RegisterHandlers(op)
	if webhooks {
		controller.RegisterAdmission(op)
	}
	if err := op.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("setting up the handlers of guestbooks: %w", err)
	}
	// ... and ends here: nothing else of the project has changed.

	if err := errors.Join(
		mgr.AddHealthzCheck("healthz", healthz.Ping), mgr.AddReadyzCheck("readyz", healthz.Ping),
	); err != nil {
		return fmt.Errorf("setting up the probes: %w", err)
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}
