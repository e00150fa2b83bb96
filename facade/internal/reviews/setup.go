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
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/metrics"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/webhooks/admission"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
)

// ReviewServer serves the admission handlers of one operator. It exists for the whole life of the operator; a plan
// provides its settings.
type ReviewServer struct {
	// location is the file and line where the operator was created. Errors about the operator's own handlers mention
	// it.
	operator, location string
	// InProcess answers reviews without a port, for tests. It is nil in production.
	InProcess *kit.FakeWebhooks

	// These fields come from the last plan. Reviews read the atomic ones concurrently, because the startup makes
	// another plan.
	settings           ReviewSettings
	servedNamespaces   defaults.NamespaceScope
	asKopf             bool
	reviewedNamespaces atomic.Pointer[namespaces.NamespaceRule]
	ownWrites          atomic.Pointer[review.OwnWrites]

	creations     atomic.Pointer[reconcilers.Creations] // nil before the operator is set up
	handlersReady chan struct{}                         // closed by open, when reviews may call handlers
	// handlersReadyOnce closes indexed once, because several plans can return a function for it.
	handlersReadyOnce sync.Once
	hasHandlers       bool // there are handlers, and they are served
}

// NewReviewServer returns the server of an operator that was created at this location.
func NewReviewServer(operator, location string) *ReviewServer {
	return &ReviewServer{operator: operator, location: location, handlersReady: make(chan struct{})}
}

// ApplyPlanSettings sets the settings of a plan. For reviews in the process, it replaces most of them, because there is
// no port, no certificate and no configuration in the cluster. A Server in the settings has priority over that. A plan
// is made before the set-up, and again after the startup handlers have changed the settings.
func (r *ReviewServer) ApplyPlanSettings(
	own *ReviewSettings, served defaults.NamespaceScope, kept defaults.Persistence, hasHandlers bool,
) {
	// Requests may arrive during a startup, so these values are replaced atomically.
	r.ownWrites.Store(ownWrites(kept))
	r.servedNamespaces, r.asKopf = served, kept.KopfFormats
	r.reviewedNamespaces.Store(own.reviewedNamespaces(served, r.asKopf))
	switch {
	case r.InProcess == nil:
	case own.Server == r.InProcess.Server: // an earlier plan has already replaced the settings
	// Attach connects the API server in memory. It is only called if the operator has any admission handlers.
	case own.Server != nil || !own.FinalizerOnCreate && !hasHandlers || !r.InProcess.Attach():
		r.InProcess = nil
	default:
		// Only the settings that decide which requests are reviewed stay.
		*own = ReviewSettings{
			Server: r.InProcess.Server, FinalizerOnCreate: own.FinalizerOnCreate,
			ExcludedNamespaces: own.ExcludedNamespaces, WithoutMatchConditions: true,
		}
	}
	// The caller's settings are changed, too, because other parts of the plan read them.
	r.settings = *own
}

// AwaitAnnouncement blocks until admission handlers can be called in the process. It returns false if the operator ends
// first.
func (r *ReviewServer) AwaitAnnouncement(ctx context.Context) bool {
	if r.InProcess == nil || !r.hasHandlers {
		return true
	}
	select {
	case <-r.InProcess.Announced:
		return true
	case <-ctx.Done():
		return false
	}
}

// CheckServer returns an error if the plan has admission handlers and the settings are not sufficient to serve them.
func (r *ReviewServer) CheckServer(plan []reconcilers.Registration, program bool) error {
	if len(WatchingHandlers(plan)) == len(plan) {
		return nil
	}
	return r.settings.CheckServer(program)
}

// ReviewOpener returns a function that allows calls of admission handlers. The engine calls it when the startup has
// succeeded and the indices are filled, because handlers may need both. It returns nil if the plan has no such
// handlers.
func (r *ReviewServer) ReviewOpener(plan []reconcilers.Registration) func() {
	if len(WatchingHandlers(plan)) == len(plan) {
		return nil
	}
	return func() { r.handlersReadyOnce.Do(func() { close(r.handlersReady) }) }
}

// WatchingHandlers returns the handlers for which the engine watches objects. Admission handlers get objects from
// requests.
func WatchingHandlers(plan []reconcilers.Registration) []reconcilers.Registration {
	return slices.DeleteFunc(slices.Clone(plan), func(r reconcilers.Registration) bool {
		return registry.IsAdmissionHandler(r.Handler)
	})
}

// WithDefaultOperations adds the default operations to a validating handler. A check of the object's content must not
// prevent the deletion of an invalid object, so DELETE must be explicit. With Kopf's formats, DELETE is included, as in
// Kopf.
func (r *ReviewServer) WithDefaultOperations(h *handlers.Handler) *handlers.Handler {
	if !registry.IsAdmissionHandler(h) || h.Mutating || len(h.Operations) > 0 || r.asKopf {
		return h
	}
	// The handler belongs to the registry, which later plans read again, so only a copy is changed.
	own := *h
	own.Operations = []string{string(admissionv1.Create), string(admissionv1.Update), string(admissionv1.Connect)}
	return &own
}

// ReviewSetup contains the arguments of the set-up with a manager.
type ReviewSetup struct {
	Plan []reconcilers.Registration
	// HasOwnManager is true if the operator has its own manager.
	HasOwnManager bool
	// AfterStartup delays reviews until the startup handlers have run in the manager.
	AfterStartup bool
	Metrics      prometheus.Registerer
}

// AddToManager serves the admission handlers of the plan by the manager's webhook server. A plan without such handlers
// only removes the entries of former ones.
func (r *ReviewServer) AddToManager(m ctrl.Manager, s ReviewSetup) error {
	options := r.planOptions(s.Plan)
	// The paths of Kopf are at the root, too, but not in a project's manager or behind a public tunnel.
	options.AtRoot = s.HasOwnManager && !options.AsKopf && r.settings.Tunnel == nil
	options.Config, options.HTTPClient = m.GetConfig(), m.GetHTTPClient()
	// With ScanningDisabled, the resources are scanned once, as in the engine.
	options.ScanOnce = r.servedNamespaces.NamedOnly
	options.Log = m.GetLogger().WithName(r.operator)
	if len(options.Registrations) == 0 {
		return r.withdrawEntries(m, options)
	}
	// Reviews wait until handlers can use all that they need. Without a startup and indices, they need nothing.
	indexes := func(r reconcilers.Registration) bool { return r.Handler.Index != nil }
	if s.AfterStartup || slices.ContainsFunc(s.Plan, indexes) {
		options.HandlersReady = r.handlersReady
	}
	// The API server in memory gets the configurations directly.
	if r.InProcess != nil {
		options.Announce = r.InProcess.Announce
	}
	var err error
	if options.Metrics, err = metrics.New(r.operator, s.Metrics); err != nil {
		return err
	}
	// From here on, errors concern the certificate or the address.
	certified, err := r.configureEndpoint(m, &options, s.HasOwnManager)
	if err != nil {
		return err
	}
	// The paths and names are checked here, before anything is registered.
	served, err := admission.New(options)
	if err != nil {
		return err
	}
	r.hasHandlers = true
	return r.registerWithManager(m, served, certified)
}

// planOptions returns the options that follow from the plan alone.
func (r *ReviewServer) planOptions(plan []reconcilers.Registration) admission.Options {
	options := admission.Options{
		Operator: r.operator, AsKopf: r.asKopf, Path: "/" + r.operator,
		Conditions: !r.settings.WithoutMatchConditions,
		// A startup handler can change these two, so they are read for each request.
		OwnWrites:          func() review.OwnWrites { return *r.ownWrites.Load() },
		ReviewedNamespaces: func() namespaces.NamespaceRule { return *r.reviewedNamespaces.Load() },
	}
	if options.AsKopf {
		// Kopf's configurations refer to the root.
		options.Path = ""
	}
	for _, one := range plan {
		if registry.IsAdmissionHandler(one.Handler) {
			options.Registrations = append(options.Registrations, admission.RegisteredHandler(one))
		}
	}
	return options
}

// withdrawEntries removes entries of the operator from the managed configurations when it has no admission handlers any
// more: persistent ones, and those of a process that was killed. They would still block requests.
func (r *ReviewServer) withdrawEntries(m ctrl.Manager, options admission.Options) error {
	options.Managed = r.settings.Managed
	if options.Managed == "" {
		return nil
	}
	options.ScanOnce, options.Identity = true, newProcessIdentity()
	// There are no entries to write, so no address is needed.
	options.ClientConfig = func([]byte) (none admissionregistrationv1.WebhookClientConfig) { return none }
	served, err := admission.New(options)
	if err != nil {
		return err
	}
	return m.Add(served)
}

// registerWithManager registers the handlers at the webhook server, and adds the readiness check and the background
// work to the manager.
func (r *ReviewServer) registerWithManager(m ctrl.Manager, served *admission.WebhookServer, certified bool) error {
	on := m.GetWebhookServer()
	if err := served.Register(on); err != nil {
		return err
	}
	if certified {
		if err := setServerCertificate(on, served.GetCertificate); err != nil {
			return err
		}
	}
	// A pod that cannot answer reviews must not get requests of its Service.
	if err := m.AddReadyzCheck(r.operator+"/admission", served.CheckReadiness); err != nil {
		return fmt.Errorf("adding a readiness check of admission: %w", err)
	}
	return m.Add(served)
}
