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

	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/metrics"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/namespaces"
	"github.com/kopf-runtime/kopf-runtime/webhooks/certificates"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"
)

// Registration is one admitting handler for the resources that a selector means.
type Registration struct {
	Selector discovery.Selector
	Handler  *handlers.Handler
}

// Options describe the admission of one operator.
type Options struct {
	// Operator is its name.
	Operator string
	// Registrations are its admitting handlers, in the order of registration. With none, managed configurations lose
	// what a former version of the operator has there.
	Registrations []Registration
	// AsKopf serves the paths of Kopf alone, and writes configurations as Kopf does.
	AsKopf bool
	// Own returns the prefix and the finalizer of what the operator itself writes, without the user: handlers are not
	// asked about that. Nil is nothing but the status.
	Own func() review.OwnWrites
	// Scope returns the namespaces whose objects the handlers are asked about; nil is all.
	Scope func() namespaces.Scope
	// Config and HTTPClient are for the API server.
	Config     *rest.Config
	HTTPClient *http.Client
	// ScanOnce finds out once which resources there are.
	ScanOnce bool
	// Metrics are those of the handlers; nil measures nothing.
	Metrics *metrics.Operator
	// Log gets what happens here.
	Log logr.Logger
	// Path is what the paths of all handlers begin with, with a slash; empty is the root. "/" with the name of the
	// operator is a good one, as others may be served at the same port.
	Path string
	// AtRoot serves the paths of Kopf below the root as well, unless others are served there.
	AtRoot bool
	// Open is closed when reviews can be answered, such as when the indices are filled; nil is from the start.
	Open <-chan struct{}
	// Certificates are what the webhook server has its certificate from, see [Admission.GetCertificate]; nil is a
	// server that has it from elsewhere.
	Certificates certificates.Source
	// Dump is a file for the CA bundle; empty is none. Kopf: cadump.
	Dump string
	// Managed is the name of the two webhook configurations; empty leaves them to others. Kopf: admission.managed.
	Managed string
	// Reach says where the API server finds the paths, given the CA bundle, which is nil without Certificates: see
	// [tunnels.ByService] and [tunnels.ByURL]. With a Tunnel, that says it. One of them is needed for Managed.
	Reach  func(bundle []byte) admissionregistrationv1.WebhookClientConfig
	Tunnel tunnels.Tunnel
	// Local is where the tunnel leads to; its path and bundle are filled in.
	Local tunnels.Local
	// Announce is called with the webhook configurations whenever they change, from the moment when reviews can be
	// answered. The entries have URLs with the paths of their handlers, and any host. Nil is not called.
	Announce func(configurations []client.Object)
	// Started tells when the webhook server can be reached, as its StartedChecker does: nothing is told to the cluster
	// before. Nil is at once.
	Started healthz.Checker
	// Conditions has the API server check filters that can be said in CEL. It has no effect with AsKopf.
	Conditions bool
	// Identity and HandOver are those of configurations.Options.
	Identity string
	HandOver time.Duration
}

func (o Options) check() error {
	switch {
	case o.Managed != "" && o.Reach == nil && o.Tunnel == nil:
		return errors.New("webhook configurations cannot be managed: it is not known where the API server finds the " +
			"webhook server")
	case o.Config == nil:
		return errors.New("there is no API server")
	}
	return nil
}
