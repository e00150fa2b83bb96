package reconcilers

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/metrics"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/internal/transport"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/health"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/controller"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/memory"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/orchestration"
)

// SetupWithManager adds the operator to the manager. Nothing is watched before the manager starts. An operator that
// cannot be added leaves no claim behind.
func SetupWithManager(m manager.Manager, o Options) error {
	guard := o.Fence
	if guard == nil {
		guard = NewFence(m)
	}
	state := o.Health
	if state == nil {
		state = health.New()
	}
	own, err := newOperator(m, o, state, guard)
	if err != nil {
		return err
	}
	if own.claim, err = newClaim(m, o); err != nil {
		return err
	}
	// Managers stop Runnables in groups. The fence is in the group of the caches, and outlives the operator.
	err = errors.Join(m.Add(guard), m.Add(own))
	if o.RunInEveryReplica {
		err = errors.Join(err, m.Add(replica{own}))
	}
	if err == nil {
		err = own.addChecks(m)
	}
	if err != nil {
		own.claim.dropClaim()
	}
	return err
}

// newOperator builds an operator without a claim. It is called again for the options that Options.Begin returns.
func newOperator(m manager.Manager, o Options, state *health.Health, f *Fence) (*operator, error) {
	o = o.withDefaults()
	var measured *metrics.OperatorMetrics
	if o.Metrics != nil {
		made, err := metrics.New(o.Name, o.Metrics)
		if err != nil {
			return nil, err
		}
		measured = made
	}
	config := m.GetConfig()
	// All clients share the metrics, the limits and the fence. Only the transport for writes, below, repeats failed
	// requests, with the delays of APIBackoffs.
	limits := transport.RequestLimits{RequestTimeout: o.RequestTimeout, WatchLimits: o.Watching}
	connection := transport.Wrap(m.GetHTTPClient(), measured.WrapRoundTrip, limits.WrapRoundTrip, f.WrapRoundTrip)
	lister, err := clientdiscovery.NewDiscoveryClientForConfigAndClient(config, connection)
	if err != nil {
		return nil, fmt.Errorf("making the discovery client of operator %q: %w", o.Name, err)
	}
	// The manager's scheme may lack Kubernetes events; everything else is written without a Go type.
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("making the client of operator %q: %w", o.Name, err)
	}
	attempts := transport.RequestRetries{Backoffs: o.APIBackoffs, EnforceRetryAfter: o.ObeyRetryAfter}
	writes := transport.Wrap(connection, attempts.WrapRoundTrip)
	direct, err := client.New(config, client.Options{HTTPClient: writes, Scheme: scheme, Mapper: m.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("making the client of operator %q: %w", o.Name, err)
	}
	lookout, err := dynamic.NewForConfigAndClient(config, connection)
	if err != nil {
		return nil, fmt.Errorf("making the client of operator %q for namespaces: %w", o.Name, err)
	}
	own := &operator{
		manager: m, fence: f, options: o, log: m.GetLogger().WithName(o.Name), poster: o.newPoster(direct, measured),
		health: state, metrics: measured, scopes: newScopes(o, lookout), beginSemaphore: make(chan struct{}, 1),
	}
	o.Journal.SetLive(own) // the journal can show the operator before it runs
	state.SetLimits(health.CheckLimits{SilenceTimeout: o.Watching.InactivityTimeout, StuckTimeout: o.StuckTimeout})
	own.orchestrator = o.newOrchestrator(lister.RESTClient(), own, measured)
	own.controllers = &controller.Dependencies{
		Settings: o.Settings, Dependents: o.Dependents, Children: o.Children, Forget: o.OnGone,
		Cluster: m, HTTPClient: connection, Defaults: m.GetControllerOptions(), Log: own.log,
		Metrics: measured, Journal: o.Journal, Ranges: own.scopes.servedRanges, ForgetDelay: o.forgetDelay(),
		Writer: patching.PatchWriter{FieldManager: o.Name}, WriteHTTPClient: writes, Abandoned: f.Down(),
		Events: o.posterFor(own.poster), Memory: newMemory(o), Health: own.health, Outage: &controller.Outage{},
		RequestResync: own.orchestrator.RequestResync, Server: o.discoveryDocuments(lister.RESTClient()),
	}
	if o.Gate != nil {
		own.controllers.Permission = o.Gate.permissionIn
		if o.NeedsGate == nil {
			f.LimitWrites(o.Gate.mayWrite)
		}
	}
	if o.RunInEveryReplica && slices.ContainsFunc(o.distinctSelectors(), o.hasIndices) {
		own.indexing = newIndexing(own, lister.RESTClient())
	}
	return own, nil
}

// newOrchestrator makes the orchestrator, which runs the resources that the selectors match by the runner.
func (o Options) newOrchestrator(
	server rest.Interface, runner orchestration.Runner, measured *metrics.OperatorMetrics,
) *orchestration.Orchestrator {
	api := o.discoveryDocuments(server)
	registrations := reconcilersOf(o.Registrations, measured)
	if o.ScanOnce {
		return orchestration.NewOnce(registrations, api, runner)
	}
	return orchestration.New(registrations, api, runner, discovery.NewCRDWatcher(server, o.distinctSelectors()))
}

// discoveryDocuments returns the source of discovery documents, with a timeout for each of them.
func (o Options) discoveryDocuments(server rest.Interface) discovery.Getter {
	return discovery.TimeoutGetter{Getter: discovery.API{Client: server}, Timeout: o.requestTimeout(0)}
}

// reconcilersOf makes a Reconciler of every registered handler. A nil measured disables the metrics.
func reconcilersOf(all []Registration, measured *metrics.OperatorMetrics) []orchestration.SelectedHandler {
	made := make([]orchestration.SelectedHandler, 0, len(all))
	for _, r := range all {
		made = append(made, orchestration.SelectedHandler{
			Selector: r.Selector, Handler: adapters.New(r.Handler, measured),
		})
	}
	return made
}

// withDefaults returns the options with all defaults filled in.
func (o Options) withDefaults() Options {
	if o.WriteTimeout == 0 {
		o.WriteTimeout = o.writeTimeout()
	}
	o.Settings = o.Settings.WithDefaults()
	return o
}

// newMemory makes the memory of objects, with the limits of running ticks and daemons.
func newMemory(o Options) *memory.Registry {
	kept := &memory.Registry{}
	kept.Ticks.Max, kept.Daemons.Max = o.Ticks, o.Daemons
	return kept
}
