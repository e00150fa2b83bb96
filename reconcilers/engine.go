package reconcilers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/background"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/posting"
)

// engine is one operator inside a manager: the Runnable that owns its kinds.
type engine struct {
	Options
	manager manager.Manager
	log     logr.Logger
	chain   adapters.Reconciler
	writer  *patching.Writer
	poster  *posting.Poster
	metrics *adapters.Metrics
	serving *serving

	memories sync.Map // of *objects, by scope
	crews    sync.Map // of *background.Crew, by scope
	indexers sync.Map // of *indexes.Indexer, by scope
	ready    *readiness
	ticks    background.Limit
	daemons  background.Limit
	dropped  sync.Map // fields that the API server does not keep
}

// scope is one kind in one namespace, or in all. Its versions are the same objects.
type scope struct {
	schema.GroupResource
	namespace string
}

var (
	_ manager.Runnable               = (*engine)(nil)
	_ manager.LeaderElectionRunnable = (*engine)(nil)
)

// SetupWithManager adds the operator to the manager. Nothing is watched before the manager starts.
func SetupWithManager(m manager.Manager, o Options) error {
	config := m.GetConfig()
	lister, err := discovery.NewDiscoveryClientForConfigAndClient(config, m.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("making the discovery client of operator %q: %w", o.Name, err)
	}
	// Writes go past the manager's cache, and so do the live reads after conflicts.
	direct, err := client.New(
		config,
		client.Options{HTTPClient: o.repeating(m.GetHTTPClient()), Scheme: m.GetScheme(), Mapper: m.GetRESTMapper()},
	)
	if err != nil {
		return fmt.Errorf("making the client of operator %q: %w", o.Name, err)
	}
	var metrics *adapters.Metrics
	if o.Metrics != nil {
		if metrics, err = adapters.NewMetrics(o.Name, o.Metrics); err != nil {
			return err
		}
	}
	e := &engine{
		Options: o, manager: m, serving: newServing(o.Registrations, getter{lister}),
		log:    m.GetLogger().WithName(o.Name),
		chain:  adapters.Standard(metrics),
		writer: &patching.Writer{Client: direct, FieldManager: o.Name, Guarded: true, Fold: true},
		poster: posting.New(direct, o.Name), metrics: metrics,
	}
	e.ticks.Most, e.daemons.Most = cmp.Or(o.Ticks, background.DefaultTicks), o.Daemons
	e.ready = newReadiness()
	e.serving.run, e.serving.announce = e.serve, e.await
	if mayChange(selectorsOf(o.Registrations)) {
		e.serving.watch = definitions{lister}.follow
	}
	if err := register(m, o); err != nil {
		return err
	}
	return m.Add(e)
}

// NeedLeaderElection is true: where the manager elects a leader, only the leader handles objects.
func (e *engine) NeedLeaderElection() bool { return true }

// Start serves the kinds until the context ends, and returns when the last handler has returned.
func (e *engine) Start(ctx context.Context) error {
	ctx = logf.IntoContext(ctx, e.log)
	// Handlers that finish during the exit may still have something to say.
	posting, stop := context.WithCancel(context.WithoutCancel(ctx))
	var background sync.WaitGroup
	background.Go(func() { _ = e.poster.Start(posting) })
	defer background.Wait()
	defer stop()
	e.Gate.pass(ctx, e.serving.discover)
	return nil
}

// serve runs one kind in all its namespaces until the context ends.
func (e *engine) serve(ctx context.Context, r Resource, own []*handlers.Handler) {
	leave, err := e.occupy(r)
	if err == nil {
		err = unambiguous(r, own)
	}
	if err != nil {
		if leave != nil {
			leave()
		}
		e.log.Error(err, "A kind is not served", "handlers", idsOf(own))
		e.unawait(r)
		return
	}
	defer leave()
	var scopes sync.WaitGroup
	w := e.newWorkers(r, own)
	for _, namespace := range e.scopes(r.Namespaced) {
		k := e.newKind(r, namespace, own, w)
		scopes.Go(func() { k.serve(ctx) })
	}
	scopes.Wait()
	if cause := context.Cause(ctx); errors.Is(cause, errMoved) || errors.Is(cause, errVanished) {
		e.unawait(r) // nobody must wait for what is not served any more
	}
}

// unambiguous tells whether all handlers of a kind have ids of their own: with two spellings of one kind, that is not
// known before they are resolved.
func unambiguous(r Resource, own []*handlers.Handler) error {
	for i, h := range own {
		for _, other := range own[:i] {
			if !h.Twin(other) && h.ID == other.ID && h.Family == other.Family && h.Reason == other.Reason &&
				h.Initial == other.Initial && h.NeedsChange == other.NeedsChange {
				return fmt.Errorf(
					"the id %q of %s is taken for %s: it is registered at %s and at %s", h.ID, r.GroupVersionKind,
					cmp.Or(string(h.Reason), "any reason"), other.Location, h.Location,
				)
			}
		}
	}
	return nil
}

// memory is that of a scope. It outlives the service of the kind: what was met once is not met for the first time
// again.
func (e *engine) memory(s scope, own []*handlers.Handler) *objects {
	held, _ := e.memories.LoadOrStore(s, newObjects(false))
	known, _ := held.(*objects)
	known.begin(hasResume(own))
	return known
}
