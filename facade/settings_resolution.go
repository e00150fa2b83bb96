package kopf

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/connection"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/conditions"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/namespaces"
)

// resolvedSettings are those of an operator with all defaults filled in, and with what follows from them.
type resolvedSettings struct {
	values  Settings
	boundTo string // the annotation that binds memory to its object; empty trusts all memory
	compact bool
	digests reconcilers.Digests

	conditions conditions.Types // that objects tell of their handlers with, if they do
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
	s.values = given.clone()
	problems = slices.Concat(
		s.values.Posting.check(), s.values.checkScope(), s.values.resolveNumbers(), s.values.resolveDurations(),
		s.values.resolveDelays(), s.values.Admission.check(), s.values.Peering.resolve(operator),
	)
	if s.values.Admission.FinalizerOnCreate && s.values.Persistence.KopfFormats {
		problems = append(problems, errors.New("Admission.FinalizerOnCreate: Kopf has no such webhook, and one for "+
			"each kind would have the same name: leave it out with kopf.AsKopf"))
	}
	if err := s.values.Tracing.check(); err != nil {
		problems = append(problems, err)
		s.values.Tracing = TracingSettings{}
	}
	return s, slices.Concat(problems, s.resolvePersistence(operator), s.resolveConditions())
}

// checkScope checks the settings that have no section.
func (s *Settings) checkScope() (problems []error) {
	for _, text := range s.Namespaces {
		if err := namespaces.Check(text); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", "Namespaces", err))
		}
	}
	slices.Sort(s.Namespaces)
	s.Namespaces = slices.Compact(s.Namespaces)
	for i, expression := range s.NamespacePatterns {
		if expression == nil {
			problems = append(problems, fmt.Errorf("NamespacePatterns[%d]: the regular expression is nil", i))
		}
	}
	if err := s.checkNamespaceLabels(); err != nil {
		problems = append(problems, fmt.Errorf("NamespaceLabels: %w", err))
		s.NamespaceLabels = ""
	}
	for i, add := range s.AddToScheme {
		if add == nil {
			problems = append(problems, fmt.Errorf("AddToScheme[%d]: the function is nil", i))
		}
	}
	return problems
}

// patterns are those of the namespaces that are served; none is the whole cluster.
func (s *Settings) patterns() (all namespaces.Patterns) {
	for _, text := range s.Namespaces {
		all = append(all, namespaces.Parse(text))
	}
	for _, expression := range s.NamespacePatterns {
		all = append(all, namespaces.Regexp(expression))
	}
	by := s.namespaceLabels()
	switch {
	case by == nil:
		return all
	case len(all) == 0:
		all = namespaces.Patterns{namespaces.Parse("*")}
	}
	return all.Labelled(by)
}

// namespaceLabels is what the labels of namespaces must match; nil is anything.
func (s *Settings) namespaceLabels() labels.Selector {
	if by, err := labels.Parse(s.NamespaceLabels); err == nil && !by.Empty() {
		return by
	}
	return nil
}

// checkNamespaceLabels returns why namespaces cannot be selected by the labels.
func (s *Settings) checkNamespaceLabels() error {
	switch _, err := metav1.ParseToLabelSelector(s.NamespaceLabels); {
	case s.NamespaceLabels == "":
		return nil
	case err != nil:
		return err
	case s.namespaceLabels() == nil:
		return fmt.Errorf("%q selects all namespaces: leave it out", s.NamespaceLabels)
	case s.ScanningDisabled:
		return errors.New("labels of namespaces are watched, which ScanningDisabled forbids: use one of both")
	default:
		return nil
	}
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
