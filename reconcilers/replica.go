package reconcilers

import (
	"context"
	"errors"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/transport"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/health"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/controller"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/orchestration"
)

// replica is the part of an operator that runs in every process, on the leader as well as on others, and also while it
// is paused: Begin, the indices, and End. See [Options.RunInEveryReplica].
type replica struct{ operator *operator }

var (
	_ manager.Runnable               = replica{}
	_ manager.LeaderElectionRunnable = replica{}
)

// NeedLeaderElection is false, because the replica runs on all processes.
func (replica) NeedLeaderElection() bool { return false }

// Start calls Begin, keeps the indices filled until the context ends, and calls End unless the controllers do.
func (r replica) Start(ctx context.Context) error {
	ctx = logf.IntoContext(ctx, r.operator.log)
	own, err := r.operator.beginOnce(ctx)
	if err != nil {
		return err
	}
	own.health.ReachStage(health.Started)
	if own.indexing == nil {
		own.reportFilled(ctx, nil) // there are no indices: a nil Readiness is open
		<-ctx.Done()
	} else {
		own.indexing.runIndexing(ctx)
	}
	if !r.operator.endCaller.CompareAndSwap(0, endByReplica) {
		return nil // the controllers have started, and call End themselves
	}
	return own.callEnd(ctx)
}

// indexing keeps the indices of an operator filled whenever its controllers do not. It has its own orchestrator, but
// writes to the same memory of the operator.
type indexing struct {
	operator     *operator
	log          logr.Logger
	controllers  *controller.Dependencies
	orchestrator *orchestration.Orchestrator
	ledger
}

var _ orchestration.Runner = (*indexing)(nil)

// newIndexing fills the indices of the operator's own memory, and uses its connection and settings.
func newIndexing(o *operator, server rest.Interface) *indexing {
	x := &indexing{
		operator: o, log: o.log.WithName("indices"),
		ledger: ledger{readiness: indexes.NewReadiness(), refusedResources: map[schema.GroupResource]bool{}},
	}
	// Index functions are not measured, so the handlers do not get the metrics.
	x.orchestrator = o.options.newOrchestrator(server, x, nil)
	x.controllers = &controller.Dependencies{
		Settings: o.controllers.Settings, Dependents: o.controllers.Dependents, Children: o.controllers.Children,
		Forget: o.controllers.Forget, ForgetDelay: o.controllers.ForgetDelay,
		Cluster: o.manager, HTTPClient: o.controllers.HTTPClient,
		Defaults: o.controllers.Defaults, Log: x.log, Events: o.controllers.Events, Memory: o.controllers.Memory,
		RequestResync: x.orchestrator.RequestResync, Abandoned: o.controllers.Abandoned, Outage: o.controllers.Outage,
	}
	return x
}

// runIndexing fills the indices until the context ends. If this process leads, the controllers start within the
// election time and list the indexed resources in any case. Waiting that long avoids listing them twice.
func (x *indexing) runIndexing(ctx context.Context) {
	ctx = logf.IntoContext(ctx, x.log)
	if transport.WaitDelay(ctx, electionWait) != nil {
		return
	}
	var filling sync.WaitGroup
	defer filling.Wait()
	filling.Go(func() { x.operator.reportFilled(ctx, x.readiness) })
	filling.Go(func() { x.readiness.LogReminders(ctx) })
	if watch := x.operator.beginScopes(ctx); watch != nil {
		filling.Go(watch)
	}
	x.orchestrator.Run(ctx)
}

// AnnounceAssignments records the resources whose indices must be filled, before the orchestrator runs them.
func (x *indexing) AnnounceAssignments(
	_ context.Context, all []orchestration.Assignment, unanswered []discovery.Selector,
) {
	s := x.operator.scopes
	s.mu.Lock()
	defer s.mu.Unlock()
	x.recordAnnounced(all, unanswered)
	names, _ := s.matchingNamespaces.Current()
	x.awaitIndices(x.operator.options, names)
}

// Run fills the indices of one resource in all its namespaces until the context ends. It gets the same assignments as
// the controllers, including handlers without an index, so that both choose the same version of a resource.
func (x *indexing) Run(ctx context.Context, a orchestration.Assignment) {
	own := x.operator.options.wholeIndices(a.Handlers)
	// Return only at the end: the orchestrator would start a returned resource again.
	if len(own) == 0 {
		<-ctx.Done()
		return
	}
	if err := checkIDs(a); err != nil {
		x.log.Error(err, "Not indexing a resource; its index functions are not called", "handlers",
			adapters.HandlerIDs(own))
		x.updateLedger(x.recordRefusal, a.Resource)
		return
	}
	namespaces := namespacesOf(a.Resource, x.operator.scopes.matchingNamespaces)
	controller.RunIndexing(ctx, x.controllers, x.readiness, a.Resource, namespaces, own)
	if errors.Is(context.Cause(ctx), controller.ErrRemoved) {
		x.updateLedger(x.stopAwaiting, a.Resource)
	}
}

// updateLedger calls the function with the present namespaces, under the lock of the scopes.
func (x *indexing) updateLedger(note func(r discovery.Resource, names []string), r discovery.Resource) {
	s := x.operator.scopes
	s.mu.Lock()
	defer s.mu.Unlock()
	names, _ := s.matchingNamespaces.Current()
	note(r, names)
}
