package kopf

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/activities"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// startUp calls the startup handlers, and adopts the settings that they have changed. If the operator must not
// continue, it returns false: with an error, or without one if the operator is stopping.
func (op *Operator) startUp(ctx context.Context) (ready bool, err error) {
	op.registry.Lock()
	// Startup handlers change a copy of the settings without the lock. A retried handler gets the same copy.
	changing := op.userSettings.deepCopySlices()
	op.startupSettings = &changing
	// In a program, registration ends here. Under the project's manager, it has already ended in the set-up.
	if op.registry.Stage == registry.Registering {
		op.registry.Stage = registry.Starting
	}
	op.registry.Unlock()
	// Without the lock: handlers can take long, and may call methods of the operator.
	if ready, err := op.activities.StartUp(ctx); !ready {
		return false, err
	}
	op.registry.Lock()
	defer op.registry.Unlock()
	// Log lines have already been written to the former log handler.
	if !defaults.IsUnchanged(op.userSettings.LogHandler, changing.LogHandler) {
		return false, fmt.Errorf("starting operator %q: a handler of OnStartup changed LogHandler, which is in use "+
			"already: give it to kopf.New", op.name)
	}
	op.userSettings, op.hasStarted = changing.deepCopySlices(), true
	return true, nil
}

// attachActivities makes the project's manager call the startup and cleanup handlers when it runs the operator.
func (op *Operator) attachActivities(m ctrl.Manager, options *reconcilers.Options) {
	if op.registry.HasActivityHandlers(activities.Cleanup) {
		options.End = op.activities.CleanUp
	}
	if !op.registry.HasActivityHandlers(activities.Startup) {
		return
	}
	options.Begin = func(ctx context.Context) (reconcilers.Options, error) {
		before := op.givenSettings()
		ready, err := op.startUp(ctx)
		if !ready {
			return reconcilers.Options{}, cmp.Or(err, context.Canceled) // a manager that stops ignores it
		}
		// The manager was set up with the former settings. Changes that come too late are errors.
		if section, use := before.lateChange(op.givenSettings(), op.coordination.HasLock()); section != "" {
			return reconcilers.Options{}, fmt.Errorf("setting up operator %q: %s: OnStartup comes too late to change "+
				"it, as %s: give it to kopf.New", op.name, section, use)
		}
		return op.optionsAfterStartup(m, *options)
	}
}

// optionsAfterStartup returns the options for the settings after the startup handlers.
func (op *Operator) optionsAfterStartup(m ctrl.Manager, before reconcilers.Options) (reconcilers.Options, error) {
	op.registry.Lock()
	defer op.registry.Unlock()
	// A startup handler may have changed the settings that this checks.
	if err := op.checkProgramOnly(); err != nil {
		return reconcilers.Options{}, err
	}
	plan, err := op.buildPlan(m.GetScheme())
	if err != nil {
		return reconcilers.Options{}, err
	}
	// The keeper of children and the finalizer depend on the settings. The other clients stay as they are.
	op.clients.children = op.newChildrenKeeper(op.clients.client, op.clients.apiReader)
	op.clients.finalizer = op.settings.values.Persistence.Finalizer
	// The options are made again from the new settings. Only End is kept from the set-up, because it does not depend on
	// settings.
	options := op.engineOptions(plan)
	options.End = before.End
	op.reviews.SetCreations(options.NewCreations())
	err = op.coordination.UpdateRunningOptions(m, &options, before, op.coordinationSettings())
	return options, err
}

// givenSettings returns a copy of the settings before their resolution.
func (op *Operator) givenSettings() Settings {
	op.registry.Lock()
	defer op.registry.Unlock()
	return op.userSettings.deepCopySlices()
}

// lateChange returns a section that the startup handlers have changed although the manager already uses its former
// value, and how it uses it. elects is true if the peering elects the leader of the manager, which happens before the
// startup.
func (s *Settings) lateChange(now Settings, elects bool) (section, use string) {
	// Go cannot compare functions, so compare their code.
	same := func(a, b func(*runtime.Scheme) error) bool {
		return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
	}
	switch {
	case !slices.EqualFunc(s.AddToScheme, now.AddToScheme, same):
		return "AddToScheme", "the manager's scheme is in use"
	case !reflect.DeepEqual(s.Admission, now.Admission):
		return "Admission", "the manager's webhook server is in use"
	case s.Tracing.Apart != now.Tracing.Apart || !defaults.IsUnchanged(s.Tracing.Provider, now.Tracing.Provider):
		return "Tracing", "handlers of the manager may be running"
	case s.Sharding != now.Sharding:
		return "Sharding", "the manager has the readiness check of its Leases"
	case elects && s.Peering != now.Peering:
		return "Peering", "the manager has elected its leader by it"
	}
	return "", ""
}
