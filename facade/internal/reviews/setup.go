package reviews

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/commandline"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/kit"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/metrics"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/namespaces"
	"github.com/kopf-runtime/kopf-runtime/webhooks/admission"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
)

// ReviewServer serves the admission handlers of one operator.
type ReviewServer struct {
	operator, location string
	// InProcess answers reviews without a port; nil in products.
	InProcess *kit.Webhooks

	// These are as of the last plan.
	settings  ReviewSettings
	served    defaults.NamespaceScope
	asKopf    bool
	scope     atomic.Pointer[namespaces.Scope]
	ownWrites atomic.Pointer[review.OwnWrites]

	creations atomic.Pointer[reconcilers.Creations] // nothing, before the operator is set up
	indexed   chan struct{}                         // closed by open
	open      sync.Once
	added     bool // handlers are served
}

// NewReviewServer returns the server of an operator that was made at this location.
func NewReviewServer(operator, location string) *ReviewServer {
	return &ReviewServer{operator: operator, location: location, indexed: make(chan struct{})}
}

// Settle takes over the settings of a plan. In the process, it replaces them: without a port, a certificate or
// configurations in the cluster. A Server of the settings stays.
func (r *ReviewServer) Settle(
	own *ReviewSettings, served defaults.NamespaceScope, kept defaults.Persistence, hasHandlers bool,
) {
	r.ownWrites.Store(ownWrites(kept))
	r.served, r.asKopf = served, kept.KopfFormats
	r.scope.Store(own.scope(served, r.asKopf))
	switch {
	case r.InProcess == nil:
	case own.Server == r.InProcess.Server: // settled before
	case own.Server != nil || !own.FinalizerOnCreate && !hasHandlers || !r.InProcess.Attach():
		r.InProcess = nil
	default:
		*own = ReviewSettings{
			Server: r.InProcess.Server, FinalizerOnCreate: own.FinalizerOnCreate,
			ExcludedNamespaces: own.ExcludedNamespaces, WithoutMatchConditions: true,
		}
	}
	r.settings = *own
}

// Await waits until admission handlers can be called in the process. It returns false if the operator ends before.
func (r *ReviewServer) Await(ctx context.Context) bool {
	if r.InProcess == nil || !r.added {
		return true
	}
	select {
	case <-r.InProcess.Announced:
		return true
	case <-ctx.Done():
		return false
	}
}

// CheckServer returns the mistake of settings that are not sufficient for a server of the admission handlers of the
// plan, if there are any.
func (r *ReviewServer) CheckServer(plan []reconcilers.Registration, program bool) error {
	if len(Watching(plan)) == len(plan) {
		return nil
	}
	return r.settings.CheckServer(program)
}

// Opener returns the function that lets admission handlers be called: they may need what the startup makes, and the
// indices. It is nil if there are no such handlers.
func (r *ReviewServer) Opener(plan []reconcilers.Registration) func() {
	if len(Watching(plan)) == len(plan) {
		return nil
	}
	return func() { r.open.Do(func() { close(r.indexed) }) }
}

// Watching are the handlers that the engine watches objects for. Those of admission need no objects.
func Watching(plan []reconcilers.Registration) []reconcilers.Registration {
	return slices.DeleteFunc(slices.Clone(plan), func(r reconcilers.Registration) bool {
		return registry.Admits(r.Handler)
	})
}

// WithOperations adds the default operations to a validating handler. A check of the object's content must not prevent
// the deletion of an invalid object, so DELETE must be explicit. With Kopf's formats, DELETE is included, as in Kopf.
func (r *ReviewServer) WithOperations(h *handlers.Handler) *handlers.Handler {
	if !registry.Admits(h) || h.Mutating || len(h.Operations) > 0 || r.asKopf {
		return h
	}
	own := *h
	own.Operations = []string{string(admissionv1.Create), string(admissionv1.Update), string(admissionv1.Connect)}
	return &own
}

// ReviewSetup has the arguments of a set-up with a manager.
type ReviewSetup struct {
	Plan []reconcilers.Registration
	// Program is true for the manager of a program.
	Program bool
	// AfterStartup delays reviews until the startup of the operator in the manager.
	AfterStartup bool
	Metrics      prometheus.Registerer
}

// Add has the admission handlers of the plan served by the manager's webhook server.
func (r *ReviewServer) Add(m ctrl.Manager, s ReviewSetup) error {
	options := r.options(s.Plan)
	options.AtRoot = s.Program && !options.AsKopf && r.settings.Tunnel == nil
	options.Config, options.HTTPClient = m.GetConfig(), m.GetHTTPClient()
	options.ScanOnce = r.served.NamedOnly
	options.Log = m.GetLogger().WithName(r.operator)
	if len(options.Registrations) == 0 {
		return r.withdraw(m, options)
	}
	indexes := func(r reconcilers.Registration) bool { return r.Handler.Index != nil }
	if s.AfterStartup || slices.ContainsFunc(s.Plan, indexes) {
		options.Open = r.indexed
	}
	if r.InProcess != nil {
		options.Announce = r.InProcess.Announce
	}
	var err error
	if options.Metrics, err = metrics.New(r.operator, s.Metrics); err != nil {
		return err
	}
	certified, err := r.reach(m, &options, s.Program)
	if err != nil {
		return err
	}
	served, err := admission.New(options)
	if err != nil {
		return err
	}
	r.added = true
	return r.serve(m, served, certified)
}

// options are those that follow from the plan alone.
func (r *ReviewServer) options(plan []reconcilers.Registration) admission.Options {
	options := admission.Options{
		Operator: r.operator, AsKopf: r.asKopf, Path: "/" + r.operator,
		Conditions: !r.settings.WithoutMatchConditions,
		Own:        func() review.OwnWrites { return *r.ownWrites.Load() },
		Scope:      func() namespaces.Scope { return *r.scope.Load() },
	}
	if options.AsKopf {
		options.Path = ""
	}
	for _, one := range plan {
		if registry.Admits(one.Handler) {
			options.Registrations = append(options.Registrations, admission.Registration(one))
		}
	}
	return options
}

// withdraw takes away what a former version of the operator, with admission handlers, has left in the managed
// configurations: persistent entries, and those of a process that was killed.
func (r *ReviewServer) withdraw(m ctrl.Manager, options admission.Options) error {
	options.Managed = r.settings.Managed
	if options.Managed == "" {
		return nil
	}
	options.ScanOnce, options.Identity = true, processIdentity()
	options.Reach = func([]byte) (none admissionregistrationv1.WebhookClientConfig) { return none }
	served, err := admission.New(options)
	if err != nil {
		return err
	}
	return m.Add(served)
}

// serve adds the server to the manager.
func (r *ReviewServer) serve(m ctrl.Manager, served *admission.Admission, certified bool) error {
	on := m.GetWebhookServer()
	if err := served.Register(on); err != nil {
		return err
	}
	if certified {
		if err := certify(on, served.GetCertificate); err != nil {
			return err
		}
	}
	if err := m.AddReadyzCheck(r.operator+"/admission", served.Check); err != nil {
		return fmt.Errorf("adding a readiness check of admission: %w", err)
	}
	return m.Add(served)
}

// PrintedReviews are the webhook configurations of a plan, for those who keep them by other means.
type PrintedReviews struct {
	options admission.Options
	own     ReviewSettings
	bundle  []byte
}

// Print returns the webhook configurations of the plan, as they would be managed.
func (r *ReviewServer) Print(plan []reconcilers.Registration, way commandline.Way) (p PrintedReviews, err error) {
	p.own, p.bundle = r.settings, way.Bundle
	if way.Service != "" || way.URL != "" {
		p.own = ReviewSettings{
			Managed: p.own.Managed, Service: way.Service, URL: way.URL, ExcludedNamespaces: p.own.ExcludedNamespaces,
		}
	}
	p.options = r.options(plan)
	p.options.Managed = cmp.Or(p.own.Managed, r.operator)
	scope := *p.own.scope(r.served, r.asKopf) // of the printed way
	p.options.Scope = func() namespaces.Scope { return scope }
	switch {
	case len(p.options.Registrations) == 0:
		return p, fmt.Errorf("operator %q has no handlers of admission, so there is nothing to print", r.operator)
	case p.own.Service == "" && p.own.URL == "":
		return p, errors.New("it is not known where the API server will find the operator: say so by --service " +
			"or --url")
	}
	return p, errors.Join(p.own.Check()...)
}

// Objects returns the configurations for the resources of the cluster, and hints for the user.
func (p PrintedReviews) Objects(
	ctx context.Context, cluster *rest.Config,
) (objects []client.Object, hints []string, err error) {
	options := p.options
	options.Config = cluster
	if options.HTTPClient, err = rest.HTTPClientFor(cluster); err != nil {
		return nil, nil, fmt.Errorf("making a client for the cluster: %w", err)
	}
	objects, absent, err := options.Objects(ctx, p.own.reach(options.Path)(p.bundle))
	if err != nil {
		return nil, nil, fmt.Errorf("printing the webhook configurations of operator %q: %w", options.Operator, err)
	}
	for _, id := range absent {
		hints = append(hints, fmt.Sprintf("The handler %q has no rules: the cluster does not have its resources. "+
			"Install the CRDs, and print again.", id))
	}
	if len(p.bundle) == 0 {
		hints = append(hints, "There is no caBundle: without one, such as that of cert-manager's injector, the API "+
			"server trusts only the CAs of its system. See --ca-file.")
	}
	return objects, hints, nil
}
