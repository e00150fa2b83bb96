package reconcilers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/health"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/controller"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/orchestration"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/posting"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/metrics"
)

// operator is one operator inside a manager: the Runnable that owns its controllers.
type operator struct {
	manager      manager.Manager
	fence        *Fence
	options      Options
	log          logr.Logger
	claim        *claim
	poster       *posting.Poster
	health       *health.Health
	metrics      *metrics.Operator
	assigned     sync.Map // the last assignments, by their resources
	controllers  *controller.Dependencies
	orchestrator *orchestration.Orchestrator
	scopes       *scopes
	indexing     *indexing // nil if the indices are filled by the controllers alone

	running   atomic.Bool // the controllers are
	filling   sync.Once
	beginning chan struct{} // full while somebody begins
	beginner  *operator     // what begun gives
	failure   error
	ends      atomic.Int32 // who is the last: see byController, byReplica
}

// Who ends an operator: its controllers, if they have ever run in the process.
const (
	byController = iota + 1
	byReplica
)

var (
	_ manager.Runnable               = (*operator)(nil)
	_ manager.LeaderElectionRunnable = (*operator)(nil)
	_ orchestration.Runner           = (*operator)(nil)
)

// NeedLeaderElection is true: where the manager elects a leader, only the leader handles objects.
func (*operator) NeedLeaderElection() bool { return true }

// Start runs the controllers until the context ends, and returns when the last handler has returned.
func (o *operator) Start(ctx context.Context) error {
	if !o.ends.CompareAndSwap(0, byController) {
		return nil // the manager is stopping
	}
	ctx = logf.IntoContext(ctx, o.log)
	own, err := o.begun(ctx)
	if err != nil {
		o.claim.end()
		return err
	}
	defer own.claim.end()
	own.metrics.Show(own.states)
	defer own.metrics.End()
	own.options.Journal.Watch(own)
	own.running.Store(true)
	defer own.running.Store(false)
	own.log.Info("Operator started", own.options.Started...)
	own.run(ctx)
	own.log.Info("Operator stopped")
	return own.end(ctx)
}

// end is the last that the operator does.
func (o *operator) end(ctx context.Context) error {
	if o.options.End == nil || !o.fence.Holds() {
		return nil
	}
	return o.options.End(ctx)
}

// begun is the operator with the options that it begins with, once in the process. Nobody waits for longer than its
// own context: a manager ends these one after another.
func (o *operator) begun(ctx context.Context) (*operator, error) {
	select {
	case o.beginning <- struct{}{}:
		defer func() { <-o.beginning }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if o.beginner == nil && o.failure == nil {
		o.beginner, o.failure = o.begin(ctx)
	}
	return o.beginner, o.failure
}

// begin is the operator with the options that it begins with: itself, if they cannot have changed.
func (o *operator) begin(ctx context.Context) (*operator, error) {
	if o.options.Begin == nil {
		return o, nil
	}
	o.health.Reach(health.Starting)
	changed, err := o.options.Begin(ctx)
	if err != nil {
		return nil, err
	}
	own, err := newOperator(o.manager, changed, o.health, o.fence)
	if err != nil {
		return nil, err
	}
	o.claim.end()
	if own.claim, err = newClaim(o.manager, changed); err != nil {
		return nil, err
	}
	return own, nil
}

// run runs the controllers until the context ends.
func (o *operator) run(ctx context.Context) {
	if o.options.NeedsGate != nil && o.options.NeedsGate() {
		o.scopes.gated = true
		o.fence.Limit(o.options.Gate.mayWrite)
	}
	// Handlers that finish during the exit may still have something to say.
	posting, stop := context.WithCancel(context.WithoutCancel(ctx))
	var background sync.WaitGroup
	background.Go(func() { _ = o.poster.Start(posting) })
	defer background.Wait()
	defer stop()
	if o.options.Beside != nil {
		background.Go(o.options.Beside(posting))
	}
	o.controllers.Exiting = ctx.Done()
	// Before it is known to be started: else it would be ready for a moment, with nothing to be looked at.
	o.health.Serve(ctx, o.options.Gate.Open, o.scopes.waiting)
	o.health.Reach(health.Started)
	// Whatever pauses the operator: those who decide that may have to know the namespaces, and what there is to be
	// served is known as soon as it goes on.
	if watch := o.beginScopes(ctx); watch != nil {
		background.Go(watch)
	}
	background.Go(func() {
		o.options.Gate.pass(ctx, func(ctx context.Context, now opening) {
			readiness := o.turn(now).Readiness
			readiness.Remind(ctx)
			o.fill(ctx, readiness)
		}, waiting)
	})
	o.orchestrator.Run(ctx)
}

// fill says when the indices are filled, whoever fills them first.
func (o *operator) fill(ctx context.Context, readiness *indexes.Readiness) {
	if o.options.Filled != nil && readiness.Wait(ctx) {
		o.filling.Do(o.options.Filled)
	}
}

// Run serves one resource in all its namespaces, whenever the gate is open, until the context ends, unless it is
// refused.
func (o *operator) Run(ctx context.Context, a orchestration.Assignment) {
	release, err := o.claim.acquire(a.Resource)
	if err == nil {
		defer release()
		err = checkIDs(a)
	}
	if err != nil {
		o.log.Error(err, "Not serving a resource; its handlers are not called", "handlers", adapters.IDs(a.Handlers))
		o.refuse(a.Resource)
		return
	}
	o.assigned.Store(a.Resource.GroupResource(), a)
	o.expectFailures(a)
	namespaces := o.namespacesOf(a.Resource)
	o.options.Gate.pass(ctx, func(ctx context.Context, now opening) {
		controller.Run(ctx, o.controllers, o.turn(now), a.Resource, namespaces, a.Handlers)
	}, waiting)
	if errors.Is(context.Cause(ctx), controller.ErrRemoved) {
		controller.Forget(o.controllers, a.Resource, a.Handlers) // controllers that a pause has ended have not
		o.removed(a.Resource)
	}
}

// checkIDs tells whether all handlers of a kind have ids of their own: with two spellings of one kind, that is not
// known before they are resolved.
func checkIDs(a orchestration.Assignment) error {
	for i, h := range a.Handlers {
		for _, other := range a.Handlers[:i] {
			if h, other := h.Description, other.Description; h.Clashes(other) {
				return fmt.Errorf(
					"the id %q of %s is taken for %s: it is registered at %s and at %s", h.ID,
					a.Resource.GroupVersionKind, cmp.Or(string(h.Reason), "any reason"), other.Location, h.Location,
				)
			}
		}
	}
	return nil
}
