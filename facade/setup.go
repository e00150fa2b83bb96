package kopf

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/activities"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/namespaces"
)

var errNoOperator = errors.New("the operator is nil or empty: make it with kopf.New")

// SetupWithManager adds the operator to a manager that the project starts itself. It is called once, after all handlers
// are registered and all types are in the manager's scheme, and before the manager starts.
//
// # Guarantees
//
// The manager's cache and its other controllers are left alone. The operator has caches of its own:
// Cache.DefaultNamespaces and Cache.ByObject of the manager do not limit what handlers are called for. Give
// [Settings].Namespaces and [Selection.MatchingLabels] again; a warning at the set-up names such options, as far as
// the cache shows them. Metrics go to the registry of controller-runtime. Where the manager elects a leader, handlers
// are called by the leader alone, and so are those of [Operator.OnStartup] and [Operator.OnCleanup], unless there are
// handlers of admission: every process serves these, so each begins with its startup, and keeps the indices filled.
// When it loses its lease, the manager gives no time to anybody: the contexts of handlers end at once, neither the
// operator nor the Client of its handlers writes anything more, and nothing is cleaned up. What handlers send through
// clients of their own is up to them: give the context to each request.
//
// # Errors
//
// All mistakes of all registrations at once, one a line, each with the file and line of the call: wrong ids, selectors
// and options, ids used twice, types that the scheme does not know. Whether the kinds exist in the cluster is not
// looked at: their handlers wait for them.
func (op *Operator) SetupWithManager(m ctrl.Manager) error {
	if op.valid() {
		if err := op.checkProgramOnly(); err != nil {
			return err
		}
	}
	return op.setUp(m, false)
}

// setUp adds the operator to a manager, be it the program's or the project's. After an error, it can be tried again,
// unless the operator has been started.
func (op *Operator) setUp(m ctrl.Manager, started bool) error {
	switch {
	case !op.valid():
		return errNoOperator
	case m == nil:
		return fmt.Errorf("setting up operator %q: the manager is nil", op.name)
	}
	before := registering
	if started {
		before = starting
	}
	op.program = started
	plan, err := op.begin(m, before)
	if err != nil {
		return err
	}
	if err := op.addTo(m, plan); err != nil {
		op.mu.Lock()
		defer op.mu.Unlock()
		op.stage = before
		return fmt.Errorf("setting up operator %q: %w", op.name, err)
	}
	return nil
}

// begin checks all that needs no manager but its scheme, and ends the time of registrations.
func (op *Operator) begin(m ctrl.Manager, expected stage) ([]reconcilers.Registration, error) {
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.stage != expected {
		return nil, fmt.Errorf(
			"setting up operator %q: it was set up already; make one operator for each manager", op.name,
		)
	}
	if err := op.fillScheme(m.GetScheme()); err != nil {
		return nil, err
	}
	plan, err := op.plan(m.GetScheme())
	if err != nil {
		return nil, err
	}
	if err := op.checkAdmissionServer(plan); err != nil {
		return nil, err
	}
	op.fence = reconcilers.NewFence(m)
	op.clients = op.clientsOf(m.GetClient(), m.GetAPIReader())
	if op.clients.keys, err = newListKeys(m); err != nil {
		return nil, err
	}
	op.stage = setUp
	return plan, nil
}

// addTo adds what the user has beside the handlers, and then the operator. No lock is held: the user's functions may
// call anything.
func (op *Operator) addTo(m ctrl.Manager, plan []reconcilers.Registration) error {
	if err := op.addManaged(m); err != nil {
		return err
	}
	if len(plan) == 0 {
		logging.Warn(m.GetLogger(), "Operator has no handlers; it does nothing", "operator", op.name)
	}
	if !op.program {
		op.warnOfCache(m, plan)
	}
	if err := m.Add(manager.RunnableFunc(op.start)); err != nil {
		return err
	}
	if err := m.Add(manager.RunnableFunc(op.awaitWork)); err != nil {
		return err
	}
	options := op.engineOptions(plan)
	options.Health = op.health
	op.creations.learn(options)
	if err := op.addPeering(m, &options); err != nil {
		return err
	}
	if !op.started {
		op.accompany(m, &options)
	}
	if err := reconcilers.SetupWithManager(m, options); err != nil {
		return err
	}
	if err := op.addAdmission(m, plan); err != nil {
		return err
	}
	return op.addProbes(m) // which would take the place of those of another operator of this name
}

// valid is false for nil and for the zero value.
func (op *Operator) valid() bool { return op != nil && op.location != "" }

// fillScheme adds the types of AddToScheme, once to each scheme.
func (op *Operator) fillScheme(scheme *runtime.Scheme) error {
	if op.filled == scheme {
		return nil
	}
	for _, add := range op.given.AddToScheme {
		if add == nil {
			continue // the plan reports it
		}
		if err := add(scheme); err != nil {
			return fmt.Errorf("setting up operator %q: adding types to the scheme: %w", op.name, err)
		}
	}
	op.filled = scheme
	return nil
}

// settle fills in the defaults of the settings, and gives all that is wrong with them.
func (op *Operator) settle(scheme *runtime.Scheme) (wrong setupErrors) {
	var problems []error
	op.settings, problems = resolveSettings(op.name, op.given)
	op.ownWrites.Store(op.settings.values.Persistence.ownWrites())
	op.judged.Store(op.settings.values.judged(&op.settings.values.Admission))
	op.serveInProcess(&op.settings.values.Admission)
	for _, err := range append(problems, op.settings.values.checkCachedReads(scheme)...) {
		wrong.add(op.location, fmt.Errorf("%s: %w", op.settingsSource(), err))
	}
	return wrong
}

// settingsSource is who has the settings made as they are.
func (op *Operator) settingsSource() string {
	if op.started && op.acts(activities.Startup) {
		return "kopf.New, changed by OnStartup"
	}
	return "kopf.New"
}

// checkProgramOnly refuses the settings of a connection and a client that are the project's own.
func (op *Operator) checkProgramOnly() error {
	var wrong setupErrors
	for _, err := range op.given.programOnly() {
		wrong.add(op.location, fmt.Errorf("%s: %w", op.settingsSource(), err))
	}
	for _, h := range op.activities {
		if h.Activity == activities.Login {
			wrong.add(h.Location, fmt.Errorf(
				"OnLogin(%q): only kopf.Main logs in: the connection is the manager's, so give it a rest.Config", h.ID,
			))
		}
	}
	return wrong.report(op.name)
}

// engineOptions are the settings as the engine has them.
func (op *Operator) engineOptions(plan []reconcilers.Registration) reconcilers.Options {
	s := op.settings
	kept, limits := s.values.Persistence, s.values.Background
	op.journal.Limit(journal.Limits{Objects: s.values.JournalObjects, Entries: s.values.JournalEntries})
	var matching *namespaces.Live
	if s.values.namespaceLabels() != nil {
		matching = op.matching
	}
	return reconcilers.Options{
		Matching: matching,
		Name:     op.name, Registrations: watching(plan), Namespaces: s.values.patterns(), Metrics: op.registry(),
		Journal: op.journal,
		Prefix:  kept.AnnotationPrefix, Finalizer: kept.Finalizer, BoundTo: s.boundTo,
		Diffbase: kept.DiffbaseStorage, Progress: kept.ProgressStorage, CompactSubs: s.compact, Digests: s.digests,
		KopfTexts: kept.KopfFormats, KopfDeletions: kept.KopfFormats,
		Workers: s.values.Queueing.WorkerLimit, ErrorDelays: s.values.Queueing.ErrorDelays,
		Backoff: s.backoff(), Lifecycle: s.values.Execution.Lifecycle.own, Checkpoint: s.values.Execution.Checkpoint,
		Daemons: limits.MaxConcurrentDaemons, Ticks: limits.MaxConcurrentTicks, CancelPolling: s.polling(),
		InstantExit: limits.InstantExitTimeout, APIBackoffs: s.values.Networking.ErrorBackoffs,
		ObeyRetryAfter: s.values.Networking.EnforceRetryAfter, NoPosting: s.values.Posting.Disabled,
		Forget: op.forgetMemos(), Filled: op.openerOfAdmission(plan), EveryReplica: len(watching(plan)) < len(plan),
		Watching: s.watching(), ScanOnce: s.values.ScanningDisabled,
		RequestTimeout: s.values.Networking.RequestTimeout, ExitTimeout: s.values.Queueing.ExitTimeout,
		PauseTimeout: atLeastNothing(s.values.Peering.PauseTimeout),
		StuckTimeout: s.values.Queueing.StuckTimeout, Posting: op.posting(), Fence: op.fence,
		Dependents: op.dependents(), Owned: op.owned(), Conditions: s.conditions,
	}
}

// start stops the manager at its start if anything was registered after the set-up: the program must not run without
// some of its handlers and say nothing.
func (op *Operator) start(context.Context) error {
	op.mu.Lock()
	defer op.mu.Unlock()
	op.stage = running
	return op.errs.report(op.name)
}
