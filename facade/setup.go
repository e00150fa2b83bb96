package kopf

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/activities"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/program"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/reviews"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// SetupWithManager adds the operator to a manager, after all registrations and before its start. The scheme must have
// all types; kinds may be missing in the cluster. Cache options of the manager do not limit handlers, see
// docs/scopes.md. With leader election only the leader calls handlers, except admission; a lost lease ends contexts and
// writes at once. The error lists all mistakes.
func (op *Operator) SetupWithManager(m ctrl.Manager) error {
	if op.isValid() {
		if err := op.checkProgramOnly(); err != nil {
			return err
		}
	}
	return op.setUp(m, false)
}

// setUp adds the operator to the manager of a program or of the project. The parameter started is true for a program,
// whose startup is over. After an error, setUp can be called again, unless the operator has been started.
func (op *Operator) setUp(m ctrl.Manager, started bool) error {
	switch {
	case !op.isValid():
		return errNoOperator
	case m == nil:
		return fmt.Errorf("setting up operator %q: the manager is nil", op.name)
	}
	// In a program, the startup has closed the registration already.
	before := registry.Registering
	if started {
		before = registry.Starting
	}
	op.coordination.HasOwnManager = started
	plan, err := op.beginSetup(m, before)
	if err != nil {
		return err
	}
	// Allow another attempt, such as with another manager.
	if err := op.addToManager(m, plan); err != nil {
		op.registry.Lock()
		defer op.registry.Unlock()
		op.registry.Stage = before
		return fmt.Errorf("setting up operator %q: %w", op.name, err)
	}
	return nil
}

// beginSetup makes all checks that only need the scheme of the manager, and closes the registration of handlers.
func (op *Operator) beginSetup(m ctrl.Manager, expected registry.SetupStage) ([]reconcilers.Registration, error) {
	op.registry.Lock()
	defer op.registry.Unlock()
	if op.registry.Stage != expected {
		return nil, fmt.Errorf(
			"setting up operator %q: it was set up already; make one operator for each manager", op.name,
		)
	}
	if err := op.fillScheme(m.GetScheme()); err != nil {
		return nil, err
	}
	plan, err := op.buildPlan(m.GetScheme())
	if err != nil {
		return nil, err
	}
	// Some settings of the webhook server are only needed if there are admission handlers, so this check needs the
	// plan.
	if err := op.reviews.CheckServer(plan, op.coordination.HasOwnManager); err != nil {
		return nil, op.settingsMistakes(err).JoinedError(op.name)
	}
	// The clients use the fence, so it comes first.
	op.fence = reconcilers.NewFence(m)
	op.clients = op.newClientSet(m.GetClient(), m.GetAPIReader())
	if op.clients.keys, err = newListKeys(m); err != nil {
		return nil, err
	}
	op.registry.Stage = registry.SetUp
	return plan, nil
}

// addToManager adds the functions of WithManager, and then the operator. It does not hold the lock, because the user's
// functions may call any method of the operator.
func (op *Operator) addToManager(m ctrl.Manager, plan []reconcilers.Registration) error {
	// An error of WithManager already contains its location.
	for _, add := range op.managerFunctions {
		if op.flags.DeletionsOnly {
			break // they do not belong to the handlers of deletions
		}
		if err := add(m); err != nil {
			return err
		}
	}
	if len(plan) == 0 {
		logging.Warn(m.GetLogger(), "Operator has no handlers; it does nothing", "operator", op.name)
	}
	// The engine has caches of its own, so options of the project's cache do not have the expected effect.
	if !op.coordination.HasOwnManager {
		program.WarnOfCache(m, op.name, op.settings.scope.ServedPatterns(), plan)
	}
	if err := m.Add(manager.RunnableFunc(op.markRunning)); err != nil {
		return err
	}
	if err := m.Add(manager.RunnableFunc(op.awaitWork)); err != nil {
		return err
	}
	if err := op.addPreflight(m, plan); err != nil {
		return err
	}
	options := op.engineOptions(plan)
	options.Health = op.health
	// The webhook that adds finalizers decides in the same way as the engine.
	op.reviews.SetCreations(options.NewCreations())
	if err := op.coordination.AddToManager(m, &options, op.coordinationSettings()); err != nil {
		return err
	}
	// In a program, the startup is over. Otherwise, the engine calls it when it begins.
	if !op.hasStarted {
		op.attachActivities(m, &options)
	}
	if err := reconcilers.SetupWithManager(m, options); err != nil {
		return err
	}
	if err := op.reviews.AddToManager(m, reviews.ReviewSetup{
		Plan: plan, HasOwnManager: op.coordination.HasOwnManager, Metrics: op.metricsRegistry(),
		AfterStartup: !op.hasStarted && op.registry.HasActivityHandlers(activities.Startup),
	}); err != nil {
		return err
	}
	// Last, because it replaces the health check of another operator with this name: the set-up of a second one must
	// fail before that.
	return op.activities.AddProbes(m, op.coordination.HasOwnManager)
}

// markRunning marks the operator as running when the manager starts. It stops the manager if a handler was registered
// after the set-up: a program must not run silently without some of its handlers.
func (op *Operator) markRunning(context.Context) error {
	op.registry.Lock()
	defer op.registry.Unlock()
	op.registry.Stage = registry.Running
	return op.registry.Mistakes.JoinedError(op.name)
}

// awaitWork closes the channel of Ready. It runs in the manager, so that it ends with it.
func (op *Operator) awaitWork(ctx context.Context) error {
	if op.health.WaitUntilReady(ctx) && op.reviews.AwaitAnnouncement(ctx) {
		op.readyOnce.Do(func() { close(op.ready) })
	}
	return nil
}
