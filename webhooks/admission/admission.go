package admission

import (
	"bytes"
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
	"github.com/kopf-runtime/kopf-runtime/webhooks/certificates"
	"github.com/kopf-runtime/kopf-runtime/webhooks/configurations"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
	"github.com/kopf-runtime/kopf-runtime/webhooks/server"
	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"
)

// startedInterval is how often the webhook server is tried before it is told to the cluster.
const startedInterval = 100 * time.Millisecond

// Admission is the admission of one operator, as a Runnable of a manager, which needs no leader's lease.
type Admission struct {
	options  Options
	handlers []*adapters.Handler // by registration
	server   *server.Server
	writer   *configurations.Writer // nil if the configurations are others' matter
	api      discovery.Getter
	crds     *discovery.CRDWatcher // nil if none are watched
	served   atomic.Pointer[[]review.Served]
	first    sync.Once
	scanned  chan struct{} // closed by the first scan, when the resources are known
	open     chan struct{} // closed when reviews can be answered

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
	a := &Admission{options: o, scanned: make(chan struct{}), open: make(chan struct{})}
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
	reviewer := &review.Reviewer{Served: func() []review.Served { return *a.served.Load() }}
	o := server.Options{
		Operator: a.options.Operator, Path: a.options.Path, Reviewer: reviewer, Open: a.open, Log: a.options.Log,
	}
	if !a.options.AsKopf {
		o.Endpoints = endpoints(a.options.Registrations)
	}
	a.server, err = server.New(o)
	return err
}

// manage makes what writes the configurations.
func (a *Admission) manage() error {
	if a.options.Managed == "" {
		return nil
	}
	form := a.options.form()
	// Names do not depend on the cluster, so what is wrong with them is known already.
	_, err := configurations.Objects(
		a.options.Managed, a.options.hooks(nil), admissionregistrationv1.WebhookClientConfig{}, form,
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

// Check is a check of readiness: an error until reviews can be answered.
func (a *Admission) Check(r *http.Request) error { return a.server.Check(r) }

// GetCertificate is for the tls.Config of a webhook server that has its certificate from here.
func (a *Admission) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if a.options.Certificates == nil {
		return nil, errors.New("the webhook server has its certificate from elsewhere")
	}
	return a.options.Certificates.GetCertificate(hello)
}

// NeedLeaderElection tells the manager that every replica serves.
func (a *Admission) NeedLeaderElection() bool { return false }

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
		also(a.writer.Run)
	}
	<-running.Done()
	all.Wait()
	if cause := context.Cause(running); ctx.Err() == nil && cause != nil {
		return fmt.Errorf("admission of operator %q: %w", a.options.Operator, cause)
	}
	return nil
}

// trust takes over a new CA bundle.
func (a *Admission) trust(ctx context.Context, bundle []byte) {
	a.mu.Lock()
	a.bundle = bundle
	a.mu.Unlock()
	if a.options.Dump != "" {
		if err := certificates.Dump(a.options.Dump, bundle); err != nil {
			logf.FromContext(ctx).Error(err, "Cannot dump the CA bundle of webhooks")
		}
	}
	a.tell()
}

// tell says where the API server finds the paths now. A tunnel need not know that the CA bundle has changed.
func (a *Admission) tell() {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.writer == nil || !a.reachable:
	case a.options.Tunnel == nil:
		a.writer.Reach(a.options.Reach(a.bundle))
	case a.way != nil:
		way := *a.way
		if bytes.Equal(way.CABundle, a.local.Bundle) {
			way.CABundle = a.bundle
		}
		a.writer.Reach(way)
	}
}

// reach waits until requests are answered, and has the tunnel opened if there is one.
func (a *Admission) reach(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-a.open:
	}
	for !a.isReachable() {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(startedInterval):
		}
	}
	a.tell()
	if a.options.Tunnel == nil {
		return nil
	}
	return a.options.Tunnel.Run(ctx, a.local, func(way admissionregistrationv1.WebhookClientConfig) {
		a.mu.Lock()
		a.way = &way
		a.mu.Unlock()
		a.tell()
	})
}

// isReachable tells whether the webhook server answers, with a certificate that clients can trust.
func (a *Admission) isReachable() bool {
	if a.options.Started != nil && a.options.Started(nil) != nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reachable = a.bundle != nil || a.options.Certificates == nil
	a.local = tunnels.Local{Address: a.options.Local, Path: a.options.Path, Bundle: a.bundle}
	return a.reachable
}
