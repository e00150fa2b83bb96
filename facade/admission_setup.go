package kopf

import (
	"fmt"
	"slices"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/activities"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/metrics"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/namespaces"
	"github.com/kopf-runtime/kopf-runtime/webhooks/admission"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
)

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

// openerOfAdmission lets handlers of admission be asked when it is called: they may need what the startup makes, and
// the indices. It is nil if there are no such handlers.
func (op *Operator) openerOfAdmission(plan []reconcilers.Registration) func() {
	if len(watching(plan)) == len(plan) {
		return nil
	}
	return op.indexed.open
}

// watching are the handlers that the engine watches objects for. Those of admission need no objects.
func watching(plan []reconcilers.Registration) []reconcilers.Registration {
	return slices.DeleteFunc(slices.Clone(plan), func(r reconcilers.Registration) bool { return registry.Admits(r.Handler) })
}

// addAdmission has the handlers of admission served by the manager's webhook server.
func (op *Operator) addAdmission(m ctrl.Manager, plan []reconcilers.Registration) error {
	options := op.admissionOptions(plan)
	options.Config, options.HTTPClient = m.GetConfig(), m.GetHTTPClient()
	options.ScanOnce = op.settings.values.ScanningDisabled
	options.Log = m.GetLogger().WithName(op.name)
	waits := !op.started && op.registry.Acts(activities.Startup)
	for _, r := range plan {
		waits = waits || r.Handler.Index != nil
	}
	if len(options.Registrations) == 0 {
		return op.withdrawAdmission(m, options)
	}
	if waits {
		options.Open = op.indexed.wait()
	}
	if op.inProcess != nil {
		options.Announce = op.inProcess.Announce
	}
	var err error
	if options.Metrics, err = metrics.New(op.name, op.metricsRegistry()); err != nil {
		return err
	}
	certified, err := op.reachAdmission(m, &options)
	if err != nil {
		return err
	}
	served, err := admission.New(options)
	if err != nil {
		return err
	}
	op.reviews = true
	return op.serveAdmission(m, served, certified)
}

// admissionOptions are those that follow from the plan alone.
func (op *Operator) admissionOptions(plan []reconcilers.Registration) admission.Options {
	options := admission.Options{
		Operator: op.name, AsKopf: op.settings.values.Persistence.KopfFormats, Path: "/" + op.name,
		Conditions: !op.settings.values.Admission.WithoutMatchConditions,
		Own:        func() review.OwnWrites { return *op.ownWrites.Load() },
		Scope:      func() namespaces.Scope { return *op.judged.Load() },
	}
	if options.AsKopf {
		options.Path = ""
	}
	options.AtRoot = op.program && !options.AsKopf && op.settings.values.Admission.Tunnel == nil
	for _, r := range plan {
		if registry.Admits(r.Handler) {
			options.Registrations = append(options.Registrations, admission.Registration(r))
		}
	}
	return options
}

// withdrawAdmission takes away what a former version of the operator, with handlers of admission, has left in the
// managed configurations: persistent entries, and those of a process that was killed.
func (op *Operator) withdrawAdmission(m ctrl.Manager, options admission.Options) error {
	options.Managed = op.settings.values.Admission.Managed
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

// serveAdmission adds what is made to the manager.
func (op *Operator) serveAdmission(m ctrl.Manager, served *admission.Admission, certified bool) error {
	on := m.GetWebhookServer()
	if err := served.Register(on); err != nil {
		return err
	}
	if certified {
		if err := certify(on, served.GetCertificate); err != nil {
			return err
		}
	}
	if err := m.AddReadyzCheck(op.name+"/admission", served.Check); err != nil {
		return fmt.Errorf("adding a readiness check of admission: %w", err)
	}
	return m.Add(served)
}
