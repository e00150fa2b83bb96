package kopf

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/connection"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/program"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/peering"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/conditions"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/settings"
)

// resolvedSettings are those of an operator with all defaults filled in, and with what follows from them.
type resolvedSettings struct {
	values     Settings
	scope      defaults.NamespaceScope
	stored     defaults.StoredForm
	conditions conditions.Types // that objects have for the outcomes of their handlers, if they do
}

// clone gives settings that share no list with these: the caller may go on with its own.
func (s Settings) clone() Settings {
	s.Namespaces, s.AddToScheme = slices.Clone(s.Namespaces), slices.Clone(s.AddToScheme)
	s.NamespacePatterns, s.CachedReads = slices.Clone(s.NamespacePatterns), slices.Clone(s.CachedReads)
	s.Admission.ExcludedNamespaces = slices.Clone(s.Admission.ExcludedNamespaces)
	s.Execution.FormerManagers = slices.Clone(s.Execution.FormerManagers)
	s.Admission.CABundle = slices.Clone(s.Admission.CABundle)
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

// resolveSettings fills in the defaults, and tells all that is wrong. What is wrong has its default in the result.
func resolveSettings(operator string, given Settings) (s resolvedSettings, problems []error) {
	var wrong []error
	s.values = given.clone()
	v := &s.values
	s.scope = v.scope()
	problems = slices.Concat(v.Posting.check(), s.scope.Check(), v.checkSchemeAdders(), v.resolveNumbers())
	v.Namespaces, v.NamespaceLabels = s.scope.Names, s.scope.Labels
	if err := checkLifecycle(v.Execution.Lifecycle); err != nil {
		problems = append(problems, fmt.Errorf("Execution.Lifecycle: %w", err))
	}
	problems = slices.Concat(problems, v.resolveDurations(), v.resolveDelays(), v.Admission.rules().Check(),
		(*defaults.Peering)(&v.Peering).Resolve(operator))
	if v.Admission.FinalizerOnCreate && v.Persistence.KopfFormats {
		problems = append(problems, errors.New("Admission.FinalizerOnCreate: Kopf has no such webhook, and one for "+
			"each kind would have the same name: leave it out with kopf.AsKopf"))
	}
	if err := v.Tracing.check(); err != nil {
		problems = append(problems, err)
		v.Tracing = TracingSettings{}
	}
	s.stored, wrong = (*defaults.Persistence)(&v.Persistence).Resolve(operator)
	var err error
	if s.conditions, err = conditions.Named(v.ConditionsDomain); err != nil {
		wrong = append(wrong, fmt.Errorf("ConditionsDomain: %w", err))
	}
	return s, append(problems, wrong...)
}

// scope returns the settings of namespaces.
func (s *Settings) scope() defaults.NamespaceScope {
	return defaults.NamespaceScope{
		Names: s.Namespaces, Expressions: s.NamespacePatterns, Labels: s.NamespaceLabels, NamedOnly: s.ScanningDisabled,
	}
}

func (s *Settings) checkSchemeAdders() (problems []error) {
	for i, add := range s.AddToScheme {
		if add == nil {
			problems = append(problems, fmt.Errorf("AddToScheme[%d]: the function is nil", i))
		}
	}
	return problems
}

// resolveDurations fills in the defaults of durations, and checks what is given.
func (s *Settings) resolveDurations() []error {
	return defaults.Problems(
		defaults.Duration("UltimateExitingTimeout", &s.UltimateExitingTimeout, serving.DefaultExitLimit, Never),
		defaults.Duration("CleanupTimeout", &s.CleanupTimeout, program.DefaultCleanup, Never),
		defaults.Duration("Execution.DefaultBackoff", &s.Execution.DefaultBackoff,
			execution.DefaultBackoff, Immediately),
		defaults.Duration("Execution.Checkpoint", &s.Execution.Checkpoint, settings.DefaultCheckpoint, 0),
		defaults.Duration("Background.CancellationPolling", &s.Background.CancellationPolling,
			settings.DefaultPolling, Never),
		defaults.Duration("Background.InstantExitTimeout", &s.Background.InstantExitTimeout,
			settings.DefaultInstantExit, 0),
		defaults.Duration("Peering.Lifetime", &s.Peering.Lifetime, peering.DefaultLifetime, 0),
		defaults.Duration("Peering.ClockSkew", &s.Peering.ClockSkew, peering.DefaultSkew, Immediately),
		defaults.Duration("Peering.TakeOverWait", &s.Peering.TakeOverWait, defaults.DefaultTakeOverWait, Immediately),
		defaults.Duration("Peering.PauseTimeout", &s.Peering.PauseTimeout, settings.DefaultPauseTimeout, Immediately),
		defaults.Duration("Watching.ServerTimeout", &s.Watching.ServerTimeout, 0, Never),
		defaults.Duration("Watching.ClientTimeout", &s.Watching.ClientTimeout, 0, Never),
		defaults.Duration("Watching.ReconnectBackoff", &s.Watching.ReconnectBackoff,
			reconcilers.DefaultReconnectBackoff, Immediately),
		defaults.Duration("Watching.InactivityTimeout", &s.Watching.InactivityTimeout,
			reconcilers.DefaultInactivityTimeout, Never),
		defaults.Duration("Queueing.ExitTimeout", &s.Queueing.ExitTimeout, settings.DefaultExitTimeout, Immediately),
		defaults.Duration("Queueing.StuckTimeout", &s.Queueing.StuckTimeout, reconcilers.DefaultStuckTimeout, Never),
		defaults.Duration("Networking.RequestTimeout", &s.Networking.RequestTimeout, 0, Never),
		defaults.Duration("Networking.ConnectTimeout", &s.Networking.ConnectTimeout, connection.DefaultConnect, Never),
		defaults.Duration("Watching.ConnectTimeout", &s.Watching.ConnectTimeout, 0, Never),
	)
}

// resolveNumbers fills in the defaults of all other numbers, and checks what is given.
func (s *Settings) resolveNumbers() []error {
	return defaults.Problems(
		defaults.Number("Queueing.WorkerLimit", &s.Queueing.WorkerLimit, settings.DefaultWorkers),
		defaults.Number("Background.MaxConcurrentDaemons", &s.Background.MaxConcurrentDaemons, 0),
		defaults.Number("Posting.PerSecond", &s.Posting.PerSecond, reconcilers.DefaultEventsPerSecond),
		defaults.Number("Background.MaxConcurrentTicks", &s.Background.MaxConcurrentTicks, settings.DefaultTicks),
		defaults.Number("JournalObjects", &s.JournalObjects, journal.DefaultObjects),
		defaults.Number("JournalEntries", &s.JournalEntries, journal.DefaultEntries),
	)
}

// resolveDelays checks lists of delays, and fills in the default of the one that has one.
func (s *Settings) resolveDelays() []error {
	if s.Queueing.ErrorDelays == nil {
		s.Queueing.ErrorDelays = slices.Clone(settings.DefaultErrorDelays)
	}
	return append(defaults.CheckDelays("Networking.ErrorBackoffs", s.Networking.ErrorBackoffs),
		defaults.CheckDelays("Queueing.ErrorDelays", s.Queueing.ErrorDelays)...)
}

// backoff is the delay as the engine has it, where a negative one is none.
func (s *resolvedSettings) backoff() time.Duration {
	if s.values.Execution.DefaultBackoff == Immediately {
		return -1
	}
	return s.values.Execution.DefaultBackoff
}

// connection is that of a program.
func (s *resolvedSettings) connection() connection.Settings {
	own := s.values
	return connection.Settings{
		ConnectTimeout: own.Networking.ConnectTimeout, WatchConnectTimeout: own.Watching.ConnectTimeout,
		TrustEnv: own.Networking.TrustEnv,
	}
}

// watching is that of the engine.
func (s *resolvedSettings) watching() reconcilers.Watching {
	own := s.values.Watching
	return reconcilers.Watching{
		ServerTimeout: own.ServerTimeout, ClientTimeout: own.ClientTimeout,
		InactivityTimeout: own.InactivityTimeout, ReconnectBackoff: own.ReconnectBackoff,
	}
}

// polling is the interval as the engine has it.
func (s *resolvedSettings) polling() time.Duration {
	if s.values.Background.CancellationPolling == Never {
		return math.MaxInt64
	}
	return s.values.Background.CancellationPolling
}

// checkLifecycle tells whether there is such a lifecycle.
func checkLifecycle(l Lifecycle) error {
	if l.own.Valid() {
		return nil
	}
	return errors.New("LifecycleFunc: the function is nil: give one, or take another lifecycle, such as kopf.ASAP")
}
