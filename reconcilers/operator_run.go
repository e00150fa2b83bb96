package reconcilers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/health"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/controller"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/orchestration"
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
	if !o.endCaller.CompareAndSwap(0, endByController) {
		return nil // the replica has already ended: the manager is stopping
	}
	ctx = logf.IntoContext(ctx, o.log)
	own, err := o.beginOnce(ctx)
	if err != nil {
		o.claim.dropClaim()
		return err
	}
	defer own.claim.dropClaim()
	// The metrics and the journal read the state of the operator that runs, which may be another one than o.
	own.metrics.AddSource(own.emitStates)
	defer own.metrics.RemoveStates()
	own.options.Journal.SetLive(own)
	own.options.Ranges.BeginRun(own.currentLoad, ctx.Done())
	own.running.Store(true)
	defer own.running.Store(false)
	own.log.Info("Operator started", own.options.StartLogValues...)
	own.runControllers(ctx)
	own.log.Info("Operator stopped")
	return own.callEnd(ctx)
}

// callEnd calls Options.End, unless the manager has stopped waiting for the operator, such as after a lost lease.
// Another process may be the leader then, and must not be disturbed.
func (o *operator) callEnd(ctx context.Context) error {
	if o.options.End == nil || !o.fence.ManagerWaits() {
		return nil
	}
	return o.options.End(ctx)
}

// beginOnce returns the operator with the options that Options.Begin returns. Begin is called once in the process,
// although both Start and the replica need its result. A caller waits only until its own context ends, because the
// manager ends the contexts of its groups one after another.
func (o *operator) beginOnce(ctx context.Context) (*operator, error) {
	select {
	case o.beginSemaphore <- struct{}{}:
		defer func() { <-o.beginSemaphore }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if o.begunOperator == nil && o.beginErr == nil {
		o.begunOperator, o.beginErr = o.callBegin(ctx)
	}
	return o.begunOperator, o.beginErr
}

// callBegin calls Options.Begin and builds the operator for the returned options. Without a Begin, the options cannot
// have changed, so it returns o itself.
func (o *operator) callBegin(ctx context.Context) (*operator, error) {
	if o.options.Begin == nil {
		return o, nil
	}
	o.health.ReachStage(health.Starting)
	changed, err := o.options.Begin(ctx)
	if err != nil {
		return nil, err
	}
	own, err := newOperator(o.manager, changed, o.health, o.fence)
	if err != nil {
		return nil, err
	}
	// The name, the prefix and the selectors may have changed: claim them again. The old claim must go first, or it
	// would conflict with the new one.
	o.claim.dropClaim()
	if own.claim, err = newClaim(o.manager, changed); err != nil {
		return nil, err
	}
	return own, nil
}

// runControllers runs the controllers until the context ends.
func (o *operator) runControllers(ctx context.Context) {
	if o.options.NeedsGate != nil && o.options.NeedsGate() {
		// Startup handlers decide whether there is any peering, so the gate is only known to be needed now.
		o.scopes.gated = true
		o.fence.LimitWrites(o.options.Gate.mayWrite)
	}
	// Handlers that finish during the exit can still post events: the poster outlives ctx, and ends after the
	// orchestrator has returned.
	posting, stop := context.WithCancel(context.WithoutCancel(ctx))
	var background sync.WaitGroup
	background.Go(func() { _ = o.poster.Start(posting) })
	defer background.Wait()
	defer stop()
	if o.options.StartExtraWork != nil {
		background.Go(o.options.StartExtraWork(posting))
	}
	o.controllers.Exiting = ctx.Done()
	// Register the gate with Health before the stage Started. Otherwise the operator would be ready for a moment, as
	// there is nothing to check yet.
	o.health.ReportServing(ctx, o.options.Gate.Open, o.scopes.unfilledScopes)
	o.health.ReachStage(health.Started)
	// The namespaces are watched also while the gate is closed: the peering of each namespace depends on them, and
	// controllers can start without a delay when the gate opens.
	if watch := o.beginScopes(ctx); watch != nil {
		background.Go(watch)
	}
	// Each opening of the gate has its own readiness. The first one that is complete calls Options.Filled.
	background.Go(func() {
		o.options.Gate.followOpenings(ctx, func(ctx context.Context, now opening) {
			readiness := o.turnFor(now).Readiness
			readiness.LogReminders(ctx)
			o.reportFilled(ctx, readiness)
		}, skipPause)
	})
	o.orchestrator.Run(ctx)
}

// reportFilled calls Options.Filled when the indices are filled. The controllers and the replica both call it; the
// first one that is complete wins.
func (o *operator) reportFilled(ctx context.Context, readiness *indexes.Readiness) {
	if o.options.OnIndicesFilled != nil && readiness.Wait(ctx) {
		o.filledOnce.Do(o.options.OnIndicesFilled)
	}
}

// Run serves one resource in all its namespaces, whenever the gate is open, until the context ends. It returns at once
// if the resource is refused, because another operator has claimed it or handler ids clash.
func (o *operator) Run(ctx context.Context, a orchestration.Assignment) {
	release, err := o.claim.acquireResource(a.Resource)
	if err == nil {
		defer release()
		err = checkIDs(a)
	}
	if err != nil {
		o.log.Error(err, "Not serving a resource; its handlers are not called", "handlers",
			adapters.HandlerIDs(a.Handlers))
		o.refuseResource(a.Resource)
		return
	}
	// Metrics look up the handlers of a scope here. The entry stays after the end, so that late counts have their kind.
	o.assignments.Store(a.Resource.GroupResource(), a)
	o.expectFailures(a)
	namespaces := o.namespacesOf(a.Resource)
	o.options.Gate.followOpenings(ctx, func(ctx context.Context, now opening) {
		controller.Run(ctx, o.controllers, o.turnFor(now), a.Resource, namespaces, a.Handlers)
	}, skipPause)
	// A removed resource has no objects any more. Controllers that a pause has ended did not forget theirs, because
	// they expected to continue.
	if errors.Is(context.Cause(ctx), controller.ErrRemoved) {
		controller.ForgetResource(o.controllers, a.Resource, a.Handlers)
		o.noteRemoved(a.Resource)
	}
}

// checkIDs returns an error if two handlers of one kind have the same id for the same reason. Registration cannot
// detect that if they use two spellings of the kind, because only discovery resolves these.
func checkIDs(a orchestration.Assignment) error {
	for i, h := range a.Handlers {
		for _, other := range a.Handlers[:i] {
			if h, other := h.Description, other.Description; h.ClashesWith(other) {
				return fmt.Errorf(
					"the id %q of %s is taken for %s: it is registered at %s and at %s", h.ID,
					a.Resource.GroupVersionKind, cmp.Or(string(h.Reason), "any reason"), other.Location, h.Location,
				)
			}
		}
	}
	return nil
}
