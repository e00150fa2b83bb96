package kopf

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/program"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/tracing"
	"github.com/kopf-runtime/kopf-runtime/internal/conditions"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/peering"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
)

// resolvedSettings are the settings of an operator with all defaults, and values that are computed from them.
type resolvedSettings struct {
	values     Settings                // with defaults
	scope      defaults.NamespaceScope // namespaces to serve
	storedForm defaults.StoredForm     // form of the data on objects
	conditions conditions.Types        // types of the conditions that report outcomes of handlers
}

// deepCopySlices returns settings whose slices do not change with those of the caller, which may continue to use its
// own.
func (s Settings) deepCopySlices() Settings {
	s.Namespaces, s.AddToScheme = slices.Clone(s.Namespaces), slices.Clone(s.AddToScheme)
	s.NamespacePatterns, s.CachedReads = slices.Clone(s.NamespacePatterns), slices.Clone(s.CachedReads)
	s.Admission.ExcludedNamespaces = slices.Clone(s.Admission.ExcludedNamespaces)
	s.Execution.FormerManagers = slices.Clone(s.Execution.FormerManagers)
	s.Admission.CABundle = slices.Clone(s.Admission.CABundle)
	s.Admission.ExtraHosts = slices.Clone(s.Admission.ExtraHosts)
	s.Admission.TLSOpts = slices.Clone(s.Admission.TLSOpts)
	s.Queueing.ErrorDelays = slices.Clone(s.Queueing.ErrorDelays)
	s.Networking.ErrorBackoffs = slices.Clone(s.Networking.ErrorBackoffs)
	p := &s.Persistence
	p.IgnoredFields, p.DigestKey = slices.Clone(p.IgnoredFields), slices.Clone(p.DigestKey)
	p.FormerDigestKeys = slices.Clone(p.FormerDigestKeys)
	for i, key := range p.FormerDigestKeys {
		p.FormerDigestKeys[i] = slices.Clone(key)
	}
	return s
}

// resolveSettings fills in the defaults, and returns all mistakes. An invalid field gets its default, so that the other
// checks can continue.
func resolveSettings(operator string, given Settings) (s resolvedSettings, problems []error) {
	var wrong []error
	// The given settings do not change, so that they can be resolved again after the startup.
	s.values = given.deepCopySlices()
	v := &s.values
	s.scope = v.namespaceScope()
	problems = slices.Concat(defaults.CheckEventNamePrefix(v.Posting.EventNamePrefix), s.scope.CheckAndNormalize())
	for i, add := range v.AddToScheme {
		if add == nil {
			problems = append(problems, fmt.Errorf("AddToScheme[%d]: the function is nil", i))
		}
	}
	problems = append(problems, v.resolveNumbers()...)
	// The check has sorted the names and cleared an invalid selector.
	v.Namespaces, v.NamespaceLabels = s.scope.Names, s.scope.Labels
	if err := checkLifecycle(v.Execution.Lifecycle); err != nil {
		problems = append(problems, fmt.Errorf("Execution.Lifecycle: %w", err))
	}
	// Each of these fills in defaults and returns mistakes.
	problems = slices.Concat(problems, v.resolveDurations(), v.resolveDelays(),
		v.Admission.asReviewSettings().CheckFields(),
		(*defaults.Peering)(&v.Peering).ResolveDefaults(operator))
	// Kopf's names of webhooks do not contain the kind, so there can only be one.
	if v.Admission.FinalizerOnCreate && v.Persistence.KopfFormats {
		problems = append(problems, errors.New("Admission.FinalizerOnCreate: Kopf has no such webhook, and one for "+
			"each kind would have the same name: leave it out with kopf.AsKopf"))
	}
	// Without valid settings, there are no traces, so that later steps do not call the provider.
	if err := tracing.CheckSettings(v.Tracing.Provider, v.Tracing.Apart); err != nil {
		problems = append(problems, err)
		v.Tracing = TracingSettings{}
	}
	// Sections with rules of their own convert to types of package defaults, which have the same fields.
	s.storedForm, wrong = (*defaults.Persistence)(&v.Persistence).ResolveDefaults(operator)
	var err error
	if s.conditions, err = conditions.NewTypes(v.ConditionsDomain); err != nil {
		wrong = append(wrong, fmt.Errorf("ConditionsDomain: %w", err))
	}
	return s, append(problems, wrong...)
}

// namespaceScope returns the settings that select namespaces.
func (s *Settings) namespaceScope() defaults.NamespaceScope {
	return defaults.NamespaceScope{
		Names: s.Namespaces, Expressions: s.NamespacePatterns, Labels: s.NamespaceLabels, NamedOnly: s.ScanningDisabled,
	}
}

// resolveDurations fills in the defaults of durations, and returns the mistakes. The last argument is the special value
// that a field accepts; zero is none.
func (s *Settings) resolveDurations() []error {
	// A default of zero leaves the choice to the engine.
	duration := defaults.ResolveDuration
	return defaults.NonNilErrors(
		duration("UltimateExitingTimeout", &s.UltimateExitingTimeout, serving.DefaultExitLimit, Never),
		duration("CleanupTimeout", &s.CleanupTimeout, program.DefaultCleanupTimeout, Never),
		duration("Execution.DefaultBackoff", &s.Execution.DefaultBackoff, execution.DefaultBackoff, Immediately),
		duration("Execution.Checkpoint", &s.Execution.Checkpoint, kind.DefaultCheckpoint, 0),
		duration("Background.CancellationPolling", &s.Background.CancellationPolling, kind.DefaultPolling, Never),
		duration("Background.InstantExitTimeout", &s.Background.InstantExitTimeout, kind.DefaultInstantExit, 0),
		duration("Peering.Lifetime", &s.Peering.Lifetime, peering.DefaultLifetime, 0),
		duration("Peering.ClockSkew", &s.Peering.ClockSkew, peering.DefaultSkew, Immediately),
		duration("Peering.TakeOverWait", &s.Peering.TakeOverWait, defaults.DefaultTakeOverWait, Immediately),
		duration("Peering.PauseTimeout", &s.Peering.PauseTimeout, kind.DefaultPauseTimeout, Immediately),
		duration("Watching.ServerTimeout", &s.Watching.ServerTimeout, 0, Never),
		duration("Watching.ClientTimeout", &s.Watching.ClientTimeout, 0, Never),
		duration("Watching.ReconnectBackoff", &s.Watching.ReconnectBackoff,
			reconcilers.DefaultReconnectBackoff, Immediately),
		duration("Watching.InactivityTimeout", &s.Watching.InactivityTimeout,
			reconcilers.DefaultInactivityTimeout, Never),
		duration("Queueing.ExitTimeout", &s.Queueing.ExitTimeout, kind.DefaultExitTimeout, Immediately),
		duration("Queueing.StuckTimeout", &s.Queueing.StuckTimeout, reconcilers.DefaultStuckTimeout, Never),
		duration("Networking.RequestTimeout", &s.Networking.RequestTimeout, 0, Never),
		duration("Networking.ConnectTimeout", &s.Networking.ConnectTimeout, credentials.DefaultConnectTimeout, Never),
		duration("Watching.ConnectTimeout", &s.Watching.ConnectTimeout, 0, Never),
	)
}

// resolveNumbers fills in the defaults of numbers, and returns the mistakes. A default of zero means no limit.
func (s *Settings) resolveNumbers() []error {
	return defaults.NonNilErrors(
		defaults.ResolveNumber("Queueing.WorkerLimit", &s.Queueing.WorkerLimit, kind.DefaultWorkers),
		defaults.ResolveNumber("Background.MaxConcurrentDaemons", &s.Background.MaxConcurrentDaemons, 0),
		defaults.ResolveNumber("Posting.PerSecond", &s.Posting.PerSecond, reconcilers.DefaultEventsPerSecond),
		defaults.ResolveNumber("Background.MaxConcurrentTicks", &s.Background.MaxConcurrentTicks,
			kind.DefaultTicks),
		defaults.CheckShards("Sharding.Shards", s.Sharding.Shards),
		defaults.ResolveNumber("JournalObjects", &s.JournalObjects, journal.DefaultObjects),
		defaults.ResolveNumber("JournalEntries", &s.JournalEntries, journal.DefaultEntries),
	)
}

// resolveDelays checks the lists of delays, and fills in the default of ErrorDelays. An empty list is valid, so only
// nil is the default.
func (s *Settings) resolveDelays() []error {
	if s.Queueing.ErrorDelays == nil {
		s.Queueing.ErrorDelays = slices.Clone(kind.DefaultErrorDelays)
	}
	return append(defaults.CheckDelays("Networking.ErrorBackoffs", s.Networking.ErrorBackoffs),
		defaults.CheckDelays("Queueing.ErrorDelays", s.Queueing.ErrorDelays)...)
}

// connectionSettings returns the settings for the connections of a program.
func (s *resolvedSettings) connectionSettings() credentials.Configuration {
	own := s.values
	return credentials.Configuration{
		ConnectTimeout: own.Networking.ConnectTimeout, WatchConnectTimeout: own.Watching.ConnectTimeout,
		TrustEnv: own.Networking.TrustEnv,
	}
}

// cancelPollingInterval returns the interval in the form of the engine, where the longest duration means never.
func (s *resolvedSettings) cancelPollingInterval() time.Duration {
	if s.values.Background.CancellationPolling == Never {
		return math.MaxInt64
	}
	return s.values.Background.CancellationPolling
}

// checkProgramOnly returns an error for each setting that only [Main] supports. Zero values must be checked before the
// defaults are filled in.
func (s *Settings) checkProgramOnly() []error {
	only := defaults.CheckProgramOnly
	return append(s.Admission.asReviewSettings().CheckProgramOnly(), defaults.NonNilErrors(
		only("UltimateExitingTimeout", s.UltimateExitingTimeout != 0, "the process is the project's"),
		only("CachedReads", len(s.CachedReads) > 0,
			"the client is the manager's: configure there which objects it reads from its cache"),
		only("LogHandler", s.LogHandler != nil, "give logr.FromSlogHandler(handler) to the manager as its Logger"),
		only("Networking.ConnectTimeout", s.Networking.ConnectTimeout != 0,
			"set Dial in the rest.Config of the manager"),
		only("Networking.TrustEnv", s.Networking.TrustEnv, "set Proxy in the rest.Config of the manager"),
		only("Watching.ConnectTimeout", s.Watching.ConnectTimeout != 0, "set Dial in the rest.Config of the manager"),
	)...)
}
