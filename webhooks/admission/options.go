package admission

import (
	"errors"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/metrics"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
	"github.com/kopf-runtime/kopf-runtime/webhooks/certificates"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"
)

// RegisteredHandler is an admission handler with a selector of its resources.
type RegisteredHandler struct {
	Selector discovery.Selector
	Handler  *handlers.Handler
}

// Options configure the admission of one operator.
type Options struct {
	// Operator is the name of the operator.
	Operator string
	// Registrations are the admission handlers, in the order of registration. Without any, the operator's entries in
	// managed configurations are removed.
	Registrations []RegisteredHandler
	// AsKopf only serves the paths of Kopf, and writes configurations as Kopf does.
	AsKopf bool
	// OwnWrites returns the prefixes and the finalizer of the operator's own writes, for which handlers are not called.
	// The user is added here. Nil only covers the status.
	OwnWrites func() review.OwnWrites
	// ReviewedNamespaces returns the namespaces whose objects are reviewed; nil means all.
	ReviewedNamespaces func() namespaces.NamespaceRule
	// Config and HTTPClient access the API server.
	Config     *rest.Config
	HTTPClient *http.Client
	// ScanOnce scans the resources only once.
	ScanOnce bool
	// Metrics are the metrics of the handlers; nil measures nothing.
	Metrics *metrics.OperatorMetrics
	// Log gets the log lines of this package and of the reviews.
	Log logr.Logger
	// Path is the common prefix of all handlers' paths. It starts with a slash; empty means the root. "/" with the name
	// of the operator is suitable, because others may be served at the same port.
	Path string
	// AtRoot also serves the paths of Kopf below the root, unless others are served there.
	AtRoot bool
	// HandlersReady is closed when reviews can be answered, for example when the indices are filled; nil means at once.
	HandlersReady <-chan struct{}
	// Certificates provides the certificate of the webhook server, see [WebhookServer.GetCertificate]. Nil means that
	// the server has its own.
	Certificates certificates.Source
	// CADumpFile is a file for the CA bundle; empty means none. Kopf: cadump.
	CADumpFile string
	// Managed is the name of the two webhook configurations. Empty means that the operator does not manage them. Kopf:
	// admission.managed.
	Managed string
	// ClientConfig returns where the API server finds the paths. Its argument is the CA bundle, or nil without
	// Certificates: see [tunnels.ByService] and [tunnels.ByURL]. A Tunnel replaces it. Managed needs one of them.
	ClientConfig func(bundle []byte) admissionregistrationv1.WebhookClientConfig
	Tunnel       tunnels.Tunnel
	// LocalServer is the server to which the tunnel leads. Its path and bundle are filled in.
	LocalServer tunnels.Local
	// Announce is called with the webhook configurations whenever they change, starting when reviews can be answered.
	// The URLs of the entries contain the paths of their handlers, and an arbitrary host. Nil is not called.
	Announce func(configurations []client.Object)
	// StartedChecker checks whether the webhook server can be reached, like its StartedChecker. Entries are not written
	// before that. Nil means at once.
	StartedChecker healthz.Checker
	// Conditions lets the API server evaluate filters that CEL can express. It has no effect with AsKopf.
	Conditions bool
	// Identity and HandOver are passed to configurations.Options.
	Identity string
	HandOver time.Duration
}

// checkRequired returns an error for options that are not sufficient.
func (o Options) checkRequired() error {
	switch {
	case o.Managed != "" && o.ClientConfig == nil && o.Tunnel == nil:
		return errors.New("webhook configurations cannot be managed: it is not known where the API server finds the " +
			"webhook server")
	case o.Config == nil:
		return errors.New("there is no API server")
	}
	return nil
}
