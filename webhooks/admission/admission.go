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

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
	"github.com/kopf-runtime/kopf-runtime/webhooks/configurations"
	"github.com/kopf-runtime/kopf-runtime/webhooks/internal/server"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"
)

// Admission is the admission of one operator, as a Runnable of a manager, which needs no leader's lease.
type Admission struct {
	options  Options
	handlers []*adapters.Handler // by registration
	server   *server.Server
	writer   *configurations.Writer // nil if the configurations are others' matter
	api      discovery.Getter
	crds     *discovery.CRDWatcher // nil if none are watched
	identity identity
	served   atomic.Pointer[[]review.Served]
	hooking  sync.Mutex // while hooks are made and handed over
	known    resources  // that the hooks were made for
	first    sync.Once
	scanned  chan struct{} // closed by the first scan, when the resources are known
	open     chan struct{} // closed when reviews can be answered
	reached  chan struct{} // closed when the webhook server can be reached, too

	mu        sync.Mutex
	bundle    []byte
	reachable bool                                         // the webhook server answers
	local     tunnels.Local                                // what the tunnel was given
	way       *admissionregistrationv1.WebhookClientConfig // what it said
}

// New makes it. Paths that two handlers would have are an error, and so are options that cannot be.
func New(o Options) (*Admission, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("setting up the admission of operator %q: %w", o.Operator, err)
	}
	a := &Admission{options: o, scanned: make(chan struct{}), open: make(chan struct{}), reached: make(chan struct{})}
	a.served.Store(&[]review.Served{})
	for _, r := range o.Registrations {
		a.handlers = append(a.handlers, adapters.New(r.Handler, o.Metrics))
	}
	if err := errors.Join(a.connect(), a.serve(), a.manage()); err != nil {
		return nil, fmt.Errorf("setting up the admission of operator %q: %w", o.Operator, err)
	}
	return a, nil
}

// connect makes what looks for resources.
func (a *Admission) connect() error {
	client, err := clientdiscovery.NewDiscoveryClientForConfigAndClient(a.options.Config, a.options.HTTPClient)
	if err != nil {
		return fmt.Errorf("making the discovery client: %w", err)
	}
	a.identity.api = client.RESTClient()
	a.api = discovery.Limited{Getter: discovery.API{Client: client.RESTClient()}}
	if !a.options.ScanOnce {
		var selectors []discovery.Selector
		for _, r := range a.options.Registrations {
			selectors = append(selectors, r.Selector)
		}
		a.crds = discovery.NewCRDWatcher(client.RESTClient(), selectors)
	}
	return nil
}

// serve makes the server.
func (a *Admission) serve() (err error) {
	reviewer := &review.Reviewer{Served: func() []review.Served { return *a.served.Load() }, Own: a.ownWrites}
	if a.options.Scope != nil {
		reviewer.Serves = func(namespace string) bool { return a.options.Scope().Has(namespace) }
	}
	o := server.Options{
		Operator: a.options.Operator, Path: a.options.Path, AtRoot: a.options.AtRoot, Reviewer: reviewer,
		Open: a.open, Log: a.options.Log, Endpoints: a.options.endpoints(),
	}
	a.server, err = server.New(o)
	return err
}

// ownWrites are those of the operator as it is set up now.
func (a *Admission) ownWrites() (own review.OwnWrites) {
	if a.options.Own != nil {
		own = a.options.Own()
	}
	own.User = a.identity.user
	return own
}

// manage makes what writes the configurations.
func (a *Admission) manage() error {
	if a.options.Managed == "" {
		return nil
	}
	form := a.options.form()
	// Names do not depend on the cluster, so what is wrong with them is known already.
	_, err := configurations.Objects(
		a.options.Managed, a.options.hooks(resources{}), admissionregistrationv1.WebhookClientConfig{}, form,
	)
	if err != nil {
		return err
	}
	client, err := configurations.NewClient(a.options.Config, a.options.HTTPClient)
	if err != nil {
		return fmt.Errorf("making the client of webhook configurations: %w", err)
	}
	a.writer = configurations.NewWriter(configurations.Options{
		Client: client, Name: a.options.Managed, Operator: a.options.Operator, Identity: a.options.Identity,
		Started: time.Now(), Form: form, HandOver: a.options.HandOver,
	})
	return nil
}

// Register puts the paths on a webhook server, such as that of the manager.
func (a *Admission) Register(on webhook.Server) error { return a.server.Register(on) }

// Check is a check of readiness: an error until reviews can be answered, and while there is no certificate for that.
func (a *Admission) Check(r *http.Request) error {
	if err := a.server.Check(r); err != nil || a.options.Certificates == nil {
		return err
	}
	if err := a.options.Certificates.Check(); err != nil {
		return fmt.Errorf("the certificate of webhooks: %w", err)
	}
	return nil
}

// GetCertificate is for the tls.Config of a webhook server that has its certificate from here.
func (a *Admission) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if a.options.Certificates == nil {
		return nil, errors.New("the webhook server has its certificate from elsewhere")
	}
	return a.options.Certificates.GetCertificate(hello)
}

// NeedLeaderElection tells the manager that every replica serves.
func (a *Admission) NeedLeaderElection() bool { return false }

// write keeps the configurations. Without handlers, there is nothing to serve: a failed removal is only logged, so that
// it does not end the other controllers of the process.
func (a *Admission) write(ctx context.Context) error {
	err := a.writer.Run(ctx)
	if err == nil || len(a.options.Registrations) > 0 {
		return err
	}
	logging.Warn(logf.FromContext(ctx), "Cannot look for webhook entries of an earlier version of the operator; "+
		"remove them by hand, or do not name managed configurations", "name", a.options.Managed, "error", err.Error())
	return nil
}

// Start runs until the context ends, and leaves the cluster as it should be without this process. The webhook server
// must go on meanwhile, as that of a manager does.
func (a *Admission) Start(ctx context.Context) error {
	ctx = logf.IntoContext(ctx, a.options.Log)
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var all sync.WaitGroup
	also := func(run func(ctx context.Context) error) {
		all.Go(func() {
			if err := run(running); err != nil {
				stop(err)
			}
		})
	}
	also(a.follow)
	also(a.opens)
	if source := a.options.Certificates; source != nil {
		also(func(ctx context.Context) error { return source.Run(ctx, func(b []byte) { a.trust(ctx, b) }) })
	}
	if a.writer != nil {
		also(a.reach)
		also(a.write)
	}
	closeTunnel := a.openTunnel(running, stop)
	<-running.Done()
	all.Wait()
	closeTunnel() // after the entries have gone that lead there
	if cause := context.Cause(running); ctx.Err() == nil && cause != nil {
		return fmt.Errorf("admission of operator %q: %w", a.options.Operator, cause)
	}
	return nil
}
