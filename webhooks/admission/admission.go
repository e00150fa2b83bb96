package admission

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	clientdiscovery "k8s.io/client-go/discovery"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/webhooks/configurations"
	"github.com/kopf-runtime/kopf-runtime/webhooks/internal/server"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"
)

// WebhookServer serves the admission handlers of one operator. It is a Runnable of a manager, and runs in every
// replica.
type WebhookServer struct {
	options  Options
	handlers []*adapters.HandlerChain // in the order of registration
	server   *server.Server
	writer   *configurations.Writer // nil if the operator does not manage configurations
	api      discovery.Getter
	crds     *discovery.CRDWatcher // nil if CRDs are not watched
	identity identity
	// servedResources contains the resources and their handlers. Each review reads it, and each scan replaces it.
	servedResources  atomic.Pointer[[]review.ServedResource]
	hooksMu          sync.Mutex // serializes the computation of hooks and their transfer to the writer
	scannedResources resources  // the resources of the last hooks, guarded by hooking
	scannedOnce      sync.Once
	scanned          chan struct{} // closed by the first complete scan
	reviewsReady     chan struct{} // closed when reviews are answered
	serverReachable  chan struct{} // closed when the webhook server is reachable, too

	// mu guards the fields below, which determine the address of the server.
	mu           sync.Mutex
	bundle       []byte                                       // the CA bundle; nil if it is not known yet
	wasReachable bool                                         // the webhook server responds
	localServer  tunnels.Local                                // the argument of the tunnel
	tunnelConfig *admissionregistrationv1.WebhookClientConfig // the last client configuration from the tunnel
}

// New returns the admission of an operator. It does not use the network. Invalid options are an error, and so are two
// handlers with the same path or entry name.
func New(o Options) (*WebhookServer, error) {
	if err := o.checkRequired(); err != nil {
		return nil, fmt.Errorf("setting up the admission of operator %q: %w", o.Operator, err)
	}
	a := &WebhookServer{options: o, scanned: make(chan struct{}), reviewsReady: make(chan struct{}),
		serverReachable: make(chan struct{})}
	a.servedResources.Store(&[]review.ServedResource{})
	for _, r := range o.Registrations {
		a.handlers = append(a.handlers, adapters.New(r.Handler, o.Metrics))
	}
	// All errors are returned at once.
	if err := errors.Join(a.createClients(), a.createServer(), a.createWriter()); err != nil {
		return nil, fmt.Errorf("setting up the admission of operator %q: %w", o.Operator, err)
	}
	return a, nil
}

// createClients creates the clients that find resources and the operator's user.
func (a *WebhookServer) createClients() error {
	client, err := clientdiscovery.NewDiscoveryClientForConfigAndClient(a.options.Config, a.options.HTTPClient)
	if err != nil {
		return fmt.Errorf("making the discovery client: %w", err)
	}
	a.identity.api = client.RESTClient()
	a.api = discovery.TimeoutGetter{Getter: discovery.API{Client: client.RESTClient()}}
	// CRDs are watched to find new resources soon. Only those that a selector could match matter.
	if !a.options.ScanOnce {
		var selectors []discovery.Selector
		for _, r := range a.options.Registrations {
			selectors = append(selectors, r.Selector)
		}
		a.crds = discovery.NewCRDWatcher(client.RESTClient(), selectors)
	}
	return nil
}

// createServer creates the HTTP server.
func (a *WebhookServer) createServer() (err error) {
	reviewer := &review.Reviewer{ServedResources: func() []review.ServedResource { return *a.servedResources.Load() },
		OwnWrites: a.ownWrites}
	// The scope is read for each request, because a startup handler can change the namespaces.
	if a.options.ReviewedNamespaces != nil {
		reviewer.ServesNamespace = func(namespace string) bool {
			return a.options.ReviewedNamespaces().IncludesNamespace(namespace)
		}
	}
	o := server.Options{
		Operator: a.options.Operator, Path: a.options.Path, AtRoot: a.options.AtRoot, Reviewer: reviewer,
		ReviewsReady: a.reviewsReady, Log: a.options.Log, Endpoints: a.options.handlerEndpoints(),
	}
	a.server, err = server.New(o)
	return err
}

// ownWrites returns the operator's own writes with its current settings, which a startup handler can change.
func (a *WebhookServer) ownWrites() (own review.OwnWrites) {
	if a.options.OwnWrites != nil {
		own = a.options.OwnWrites()
	}
	own.UserName = a.identity.operatorUser
	return own
}

// createWriter creates the writer of the configurations.
func (a *WebhookServer) createWriter() error {
	if a.options.Managed == "" {
		return nil
	}
	form := a.options.entryForm()
	// Names do not depend on the resources, so duplicate names are an error of the set-up, not of the first write.
	_, err := configurations.ConfigurationObjects(
		a.options.Managed, a.options.configurationHooks(resources{}), admissionregistrationv1.WebhookClientConfig{},
		form,
	)
	if err != nil {
		return err
	}
	client, err := configurations.NewClient(a.options.Config, a.options.HTTPClient)
	if err != nil {
		return fmt.Errorf("making the client of webhook configurations: %w", err)
	}
	// The youngest process wins, so its start time is set once.
	a.writer = configurations.NewWriter(configurations.Options{
		Client: client, Name: a.options.Managed, Operator: a.options.Operator, Identity: a.options.Identity,
		StartTime: time.Now(), Form: form, HandOver: a.options.HandOver,
	})
	return nil
}

// Register adds the paths to a webhook server, such as that of the manager.
func (a *WebhookServer) Register(on webhook.Server) error { return a.server.Register(on) }

// CheckReadiness is a readiness check. It fails until reviews are answered, and while there is no certificate that
// clients trust.
func (a *WebhookServer) CheckReadiness(r *http.Request) error {
	if err := a.server.CheckReadiness(r); err != nil || a.options.Certificates == nil {
		return err
	}
	if err := a.options.Certificates.Check(); err != nil {
		return fmt.Errorf("the certificate of webhooks: %w", err)
	}
	return nil
}

// GetCertificate is used in the tls.Config of a webhook server that has its certificate from these options.
func (a *WebhookServer) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if a.options.Certificates == nil {
		return nil, errors.New("the webhook server has its certificate from elsewhere")
	}
	return a.options.Certificates.GetCertificate(hello)
}

// NeedLeaderElection returns false, because every replica serves reviews.
func (a *WebhookServer) NeedLeaderElection() bool { return false }

// maintainConfigurations maintains the configurations. Without handlers, an error is only logged: there is nothing to
// serve, and the other controllers of the process must continue.
func (a *WebhookServer) maintainConfigurations(ctx context.Context) error {
	err := a.writer.Run(ctx)
	if err == nil || len(a.options.Registrations) > 0 {
		return err
	}
	logging.Warn(logf.FromContext(ctx), "Cannot look for webhook entries of an earlier version of the operator; "+
		"remove them by hand, or do not name managed configurations", "name", a.options.Managed, "error", err.Error())
	return nil
}

// Start runs until the context ends, and then removes the entries that must not outlive this process. The webhook
// server must still serve meanwhile, as that of a manager does.
//
// The parts run concurrently, but each waits for the former one: the resources are scanned, reviews are allowed, the
// webhook server becomes reachable, the tunnel opens, and the entries are written. At the end, the entries are removed
// before the tunnel closes.
func (a *WebhookServer) Start(ctx context.Context) error {
	ctx = logf.IntoContext(ctx, a.options.Log)
	// If one part fails, all others end.
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var all sync.WaitGroup
	// also runs a part in the background. Its first error ends all parts.
	also := func(run func(ctx context.Context) error) {
		all.Go(func() {
			if err := run(running); err != nil {
				stop(err)
			}
		})
	}
	also(a.followResources)
	also(a.openWhenReady)
	// Run reports the CA bundle before the certificate is available.
	if source := a.options.Certificates; source != nil {
		also(func(ctx context.Context) error { return source.Run(ctx, func(b []byte) { a.updateBundle(ctx, b) }) })
	}
	// Without managed configurations, there is no address to publish.
	if a.writer != nil {
		also(a.publishWhenReachable)
		also(a.maintainConfigurations)
	}
	closeTunnel := a.openTunnel(running, stop)
	<-running.Done()
	// The writer removes the entries when its context has ended.
	all.Wait()
	closeTunnel() // the entries that lead there are removed by now
	// The end of the manager's context is not an error.
	if cause := context.Cause(running); ctx.Err() == nil && cause != nil {
		return fmt.Errorf("admission of operator %q: %w", a.options.Operator, cause)
	}
	return nil
}
