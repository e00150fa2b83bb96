package reviews

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"

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
	// Operator is the name of the operator, Location where it was made.
	Operator, Location string
	// InProcess answers reviews without a port; nil in products.
	InProcess *kit.Webhooks

	// These are as of the last plan.
	settings  ReviewSettings
	served    defaults.NamespaceScope
	asKopf    bool
	scope     atomic.Pointer[namespaces.Scope]
	ownWrites atomic.Pointer[review.OwnWrites]

	creations atomic.Pointer[reconcilers.Creations] // nothing, before the operator is set up
	indexed   gate
	added     bool // handlers are served
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

// gate is closed until it is opened, once.
type gate struct {
	making, opening sync.Once
	opened          chan struct{}
}

func (g *gate) wait() <-chan struct{} {
	g.making.Do(func() { g.opened = make(chan struct{}) })
	return g.opened
}

func (g *gate) open() {
	g.wait()
	g.opening.Do(func() { close(g.opened) })
}

// Opener returns the function that lets admission handlers be called: they may need what the startup makes, and the
// indices. It is nil if there are no such handlers.
func (r *ReviewServer) Opener(plan []reconcilers.Registration) func() {
	if len(Watching(plan)) == len(plan) {
		return nil
	}
	return r.indexed.open
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

// ReviewSetup is what a manager is set up with.
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
	options.Log = m.GetLogger().WithName(r.Operator)
	if len(options.Registrations) == 0 {
		return r.withdraw(m, options)
	}
	indexes := func(r reconcilers.Registration) bool { return r.Handler.Index != nil }
	if s.AfterStartup || slices.ContainsFunc(s.Plan, indexes) {
		options.Open = r.indexed.wait()
	}
	if r.InProcess != nil {
		options.Announce = r.InProcess.Announce
	}
	var err error
	if options.Metrics, err = metrics.New(r.Operator, s.Metrics); err != nil {
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
		Operator: r.Operator, AsKopf: r.asKopf, Path: "/" + r.Operator,
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
	if err := m.AddReadyzCheck(r.Operator+"/admission", served.Check); err != nil {
		return fmt.Errorf("adding a readiness check of admission: %w", err)
	}
	return m.Add(served)
}
