package kopf

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/activities"
)

// startUp calls the startup handlers, and takes over the settings as they leave them. It returns false if the operator
// must not continue: with an error, or because the operator is stopping.
func (op *Operator) startUp(ctx context.Context) (ready bool, err error) {
	op.registry.Lock()
	// Startup handlers run without the lock, and retries continue with the same copy.
	changing := op.given.deepCopySlices()
	op.changing = &changing
	// In a program, registration ends here. Under the project's manager, it has ended with the set-up.
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
	// The startup has already logged with the former log handler.
	if !defaults.IsUnchanged(op.given.LogHandler, changing.LogHandler) {
		return false, fmt.Errorf("starting operator %q: a handler of OnStartup changed LogHandler, which is in use "+
			"already: give it to kopf.New", op.name)
	}
	op.given, op.started = changing.deepCopySlices(), true
	return true, nil
}

// attachActivities lets a manager of the project call the startup and the cleanup when it runs the operator.
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
		// The manager was set up with the former settings. Changes that cannot take effect any more are errors.
		if section, use := before.lateChange(op.givenSettings(), op.coordination.HasLock()); section != "" {
			return reconcilers.Options{}, fmt.Errorf("setting up operator %q: %s: OnStartup comes too late to change "+
				"it, as %s: give it to kopf.New", op.name, section, use)
		}
		return op.optionsAfterStartup(m, *options)
	}
}

// optionsAfterStartup returns the options for the settings that the startup has left.
func (op *Operator) optionsAfterStartup(m ctrl.Manager, before reconcilers.Options) (reconcilers.Options, error) {
	op.registry.Lock()
	defer op.registry.Unlock()
	// The startup may have changed these settings since the set-up.
	if err := op.checkProgramOnly(); err != nil {
		return reconcilers.Options{}, err
	}
	plan, err := op.buildPlan(m.GetScheme())
	if err != nil {
		return reconcilers.Options{}, err
	}
	// These depend on the settings; the clients do not.
	op.clients.children = op.newChildrenKeeper(op.clients.client, op.clients.live)
	op.clients.finalizer = op.settings.values.Persistence.Finalizer
	// These options are as of the set-up, except the end, which does not depend on settings.
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
	return op.given.deepCopySlices()
}

// lateChange returns a section that the startup has changed although its former value is in use, and its use. With
// elects, the peering elects the leader of the manager, so it was used before the startup.
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
	case elects && s.Peering != now.Peering:
		return "Peering", "the manager has elected its leader by it"
	}
	return "", ""
}
