package kopf

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/activities"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/children"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/program"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/reviews"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/tracing"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
)

// buildPlan returns the handlers for the engine, with handlers of the operator itself, or an error that lists all
// mistakes. The caller holds the lock.
func (op *Operator) buildPlan(scheme *runtime.Scheme) ([]reconcilers.Registration, error) {
	// Take the errors without an operator only once, so that another operator does not return them again.
	found := slices.Concat(op.registry.Mistakes, op.resolveGivenSettings(scheme), registry.TakeOwnerless())
	// Both need the settings that were just resolved.
	op.observeHandlers()
	keeper := &children.Keeper{Prefix: op.settings.values.Persistence.AnnotationPrefix}
	op.registry.RequireEnsuredLabel(keeper.ParentLabel())
	all, wrong := op.registry.BuildPlan(scheme, registry.PlanRules{
		KopfFormats: op.userSettings.Persistence.KopfFormats, IgnoredFields: op.userSettings.Persistence.IgnoredFields,
		ProgressStorage:    op.settings.values.Persistence.ProgressStorage,
		StoragePointers:    func() ([]string, error) { return op.engineOptions(nil).StoragePointers() },
		AdditionalHandlers: op.reviews.FinalizerHandlers,
		Conditions:         op.settings.values.Conditions, ConditionTypes: op.settings.conditions.TypeNames(),
	})
	if err := append(found, wrong...).JoinedError(op.name); err != nil {
		return nil, err
	}
	registry.ShareFormerIDs(all)
	// Default operations are added to a copy of the handler, so that the plan can be made again with other settings.
	plan := make([]reconcilers.Registration, 0, len(all))
	for _, one := range all {
		// Changes, which include deletions, and the indices that their handlers can use.
		if op.flags.DeletionsOnly && !one.Handler.StoresUnderID() && one.Handler.Index == nil {
			continue
		}
		h := op.reviews.WithDefaultOperations(one.Handler)
		plan = append(plan, reconcilers.Registration{Selector: one.Selector, Handler: h})
	}
	return plan, nil
}

// resolveGivenSettings resolves the settings, and returns their mistakes.
func (op *Operator) resolveGivenSettings(scheme *runtime.Scheme) registry.SetupErrors {
	var problems []error
	op.settings, problems = resolveSettings(op.name, op.userSettings)
	v := &op.settings.values
	op.reviews.ApplyPlanSettings(v.Admission.asReviewSettings(), op.settings.scope, defaults.Persistence(v.Persistence),
		op.registry.HasAdmissionHandlers())
	return op.settingsMistakes(append(problems, program.CheckCachedReads(v.CachedReads, scheme)...)...)
}

// settingsMistakes adds the location of New to the errors. After the startup, the field may come from a startup
// handler.
func (op *Operator) settingsMistakes(problems ...error) (wrong registry.SetupErrors) {
	source := "kopf.New"
	if op.hasStarted && op.registry.HasActivityHandlers(activities.Startup) {
		source = "kopf.New, changed by OnStartup"
	}
	// The text begins with the name of a field.
	for _, err := range problems {
		wrong.AddAt(op.registry.Location, fmt.Errorf("%s: %w", source, err))
	}
	return wrong
}

// checkProgramOnly returns the mistakes of settings and handlers of a connection, which is the project's own here.
func (op *Operator) checkProgramOnly() error {
	wrong := op.settingsMistakes(op.userSettings.checkProgramOnly()...)
	for _, h := range op.registry.Activities {
		if h.Activity == activities.Login {
			wrong.AddAt(h.Location, fmt.Errorf(
				"OnLogin(%q): only kopf.Main logs in: the connection is the manager's, so give it a rest.Config", h.ID,
			))
		}
	}
	return wrong.JoinedError(op.name)
}

// engineOptions converts the settings to options of the engine. The plan may be nil if only the places are needed.
func (op *Operator) engineOptions(plan []reconcilers.Registration) reconcilers.Options {
	s := op.settings
	kept, limits, watch, watched := s.values.Persistence, s.values.Background, s.values.Watching,
		reviews.WatchingHandlers(plan)
	op.journal.SetLimits(journal.RetentionLimits{Objects: s.values.JournalObjects, Entries: s.values.JournalEntries})
	// Without NamespaceLabels, namespaces do not have to be watched for their labels.
	var matching *namespaces.LiveNamespaces
	if s.scope.LabelSelector() != nil {
		matching = op.matchingNamespaces
	}
	// EveryReplica is for admission handlers, which run in all replicas and may read indices.
	options := reconcilers.Options{
		Settings: kind.Settings{
			Name: op.name, Prefix: kept.AnnotationPrefix, Finalizer: kept.Finalizer, BoundTo: s.storedForm.BoundTo,
			Diffbase: kept.DiffbaseStorage, Progress: kept.ProgressStorage, CompactSubs: s.storedForm.CompactSubs,
			Digests: s.storedForm.Digests, Conditions: s.conditions,
			KopfTexts: kept.KopfFormats, KopfDeletions: kept.KopfFormats,
			DeletionsOnly: op.flags.DeletionsOnly,
			Workers:       s.values.Queueing.WorkerLimit, ErrorDelays: s.values.Queueing.ErrorDelays,
			Backoff:   defaults.NegativeIfImmediate(s.values.Execution.DefaultBackoff),
			Lifecycle: s.values.Execution.Lifecycle.lifecycle, Checkpoint: s.values.Execution.Checkpoint,
			Daemons: limits.MaxConcurrentDaemons, Ticks: limits.MaxConcurrentTicks,
			CancelPolling: s.cancelPollingInterval(),
			InstantExit:   limits.InstantExitTimeout, ExitTimeout: s.values.Queueing.ExitTimeout,
			PauseTimeout: s.values.Peering.PauseTimeout,
		},
		MatchingNamespaces: matching, Registrations: watched, Namespaces: s.scope.ServedPatterns(),
		Metrics: op.metricsRegistry(),
		Journal: op.journal, APIBackoffs: s.values.Networking.ErrorBackoffs,
		ObeyRetryAfter: s.values.Networking.EnforceRetryAfter, NoPosting: s.values.Posting.Disabled,
		OnGone: op.registry.MemoForgetter(), OnIndicesFilled: op.reviews.ReviewOpener(plan),
		RunInEveryReplica: len(watched) < len(plan),
		Watching: reconcilers.Watching{
			ServerTimeout: watch.ServerTimeout, ClientTimeout: watch.ClientTimeout,
			InactivityTimeout: watch.InactivityTimeout, ReconnectBackoff: watch.ReconnectBackoff,
		},
		ScanOnce: s.values.ScanningDisabled, RequestTimeout: s.values.Networking.RequestTimeout,
		StuckTimeout: s.values.Queueing.StuckTimeout, Posting: op.postingOptions(), Fence: op.fence,
		StartLogValues: program.StartLine(
			plan, s.scope.ServedPatterns().Texts(), op.coordination.DescribeMode(op.coordinationSettings()), op.flags,
		),
	}
	if kept := op.clients.children; kept != nil { // the first plan is made before the operator has clients
		options.Dependents, options.Children = kept, kept.OwnedChildren
	}
	return options
}

// postingOptions converts the settings of Kubernetes events.
func (op *Operator) postingOptions() reconcilers.Posting {
	p := op.settings.values.Posting
	// Kopf's events have a fixed instance, so the formats of Kopf keep it.
	if p.ReportingInstance == "" && op.shards() > 0 && !op.settings.values.Persistence.KopfFormats {
		p.ReportingInstance = op.coordination.ReplicaName()
	}
	return reconcilers.Posting{
		Component: p.ReportingComponent, Instance: p.ReportingInstance, NamePrefix: p.EventNamePrefix,
		Level: p.Level, Loggers: p.Loggers, Plain: p.Plain, PerSecond: float32(p.PerSecond),
		DefaultNamespace: op.defaultNamespace,
	}
}

// observeHandlers makes all handlers report their attempts to the observer of the test kit and to the traces.
func (op *Operator) observeHandlers() {
	traces := op.settings.values.Tracing
	by := op.attemptObserver.WithInner(tracing.AttemptTracer{
		Provider: traces.Provider, Operator: op.name, Apart: traces.Apart,
	}.NewObserver())
	for _, r := range op.registry.Entries {
		r.Handler.Observe = by
	}
	for _, h := range op.registry.Activities {
		h.Observe = by
	}
}

// fillScheme adds the types of AddToScheme to the scheme, unless they were added before. Adding a type twice can be an
// error.
func (op *Operator) fillScheme(scheme *runtime.Scheme) error {
	if op.registry.Scheme == scheme {
		return nil
	}
	for _, add := range op.userSettings.AddToScheme {
		if add == nil {
			continue // the plan reports it
		}
		if err := add(scheme); err != nil {
			return fmt.Errorf("setting up operator %q: adding types to the scheme: %w", op.name, err)
		}
	}
	op.registry.Scheme = scheme
	return nil
}
