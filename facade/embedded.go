package kopf

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/activities"
)

// startUp calls the startup handlers and takes over the settings that they leave. It returns false if the operator must
// not continue: with an error, or because the operator is stopping.
func (op *Operator) startUp(ctx context.Context) (ready bool, err error) {
	op.registry.Lock()
	changing := op.given.clone()
	op.changing = &changing
	if op.registry.Stage == registry.Registering {
		op.registry.Stage = registry.Starting
	}
	op.registry.Unlock()
	if ready, err := op.activities.StartUp(ctx); !ready {
		return false, err
	}
	op.registry.Lock()
	defer op.registry.Unlock()
	if !sameHandler(op.given.LogHandler, changing.LogHandler) {
		return false, fmt.Errorf("starting operator %q: a handler of OnStartup changed LogHandler, which is in use "+
			"already: give it to kopf.New", op.name)
	}
	op.given, op.started = changing.clone(), true
	return true, nil
}

// accompany has the startup and the cleanup called where the operator runs, in a manager that is not its own.
func (op *Operator) accompany(m ctrl.Manager, options *reconcilers.Options) {
	if op.registry.Acts(activities.Cleanup) {
		options.End = op.activities.CleanUp
	}
	if !op.registry.Acts(activities.Startup) {
		return
	}
	options.Begin = func(ctx context.Context) (reconcilers.Options, error) {
		before, admission, peering := op.schemeAdders(), op.admissionSettings(), op.peeringSettings()
		traces := op.tracingSettings()
		ready, err := op.startUp(ctx)
		if !ready {
			return reconcilers.Options{}, cmp.Or(err, context.Canceled) // which is no error of a manager that stops
		}
		if !slices.Equal(before, op.schemeAdders()) {
			return reconcilers.Options{}, fmt.Errorf("setting up operator %q: AddToScheme: OnStartup comes too late "+
				"to change it, as the manager's scheme is in use: give it to kopf.New", op.name)
		}
		if !reflect.DeepEqual(admission, op.admissionSettings()) {
			return reconcilers.Options{}, fmt.Errorf("setting up operator %q: Admission: OnStartup comes too late to "+
				"change it, as the manager's webhook server is in use: give it to kopf.New", op.name)
		}
		if !traces.same(op.tracingSettings()) {
			return reconcilers.Options{}, fmt.Errorf("setting up operator %q: Tracing: OnStartup comes too late to "+
				"change it, as handlers of the manager may be running: give it to kopf.New", op.name)
		}
		if op.coordination.HasLock() && peering != op.peeringSettings() {
			return reconcilers.Options{}, fmt.Errorf("setting up operator %q: Peering: OnStartup comes too late to "+
				"change it, as the manager has elected its leader by it: give it to kopf.New", op.name)
		}
		return op.restarted(m, *options)
	}
}

// restarted are the options as the startup has left the settings.
func (op *Operator) restarted(m ctrl.Manager, before reconcilers.Options) (reconcilers.Options, error) {
	op.registry.Lock()
	defer op.registry.Unlock()
	if err := op.checkProgramOnly(); err != nil {
		return reconcilers.Options{}, err
	}
	plan, err := op.plan(m.GetScheme())
	if err != nil {
		return reconcilers.Options{}, err
	}
	op.clients.children = op.keeper(op.clients.client, op.clients.live)
	op.clients.finalizer = op.settings.values.Persistence.Finalizer
	options := op.engineOptions(plan)
	options.End = before.End
	op.reviews.Learn(options.Creations())
	err = op.coordination.Change(m, &options, before, op.coordinationSettings())
	return options, err
}

// schemeAdders are the functions of AddToScheme, to be compared.
func (op *Operator) schemeAdders() (all []uintptr) {
	op.registry.Lock()
	defer op.registry.Unlock()
	for _, add := range op.given.AddToScheme {
		all = append(all, reflect.ValueOf(add).Pointer())
	}
	return all
}

// admissionSettings are those as they are by now.
func (op *Operator) admissionSettings() AdmissionSettings {
	op.registry.Lock()
	defer op.registry.Unlock()
	return op.given.Admission
}

// peeringSettings are those as they are by now.
func (op *Operator) peeringSettings() PeeringSettings {
	op.registry.Lock()
	defer op.registry.Unlock()
	return op.given.Peering
}

// tracingSettings are those as they are by now.
func (op *Operator) tracingSettings() TracingSettings {
	op.registry.Lock()
	defer op.registry.Unlock()
	return op.given.Tracing
}
