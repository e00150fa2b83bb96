package defaults

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
)

// NamespaceScope is the part of the settings that selects namespaces.
type NamespaceScope struct {
	// Names are names and patterns. A namespace that matches Names or Expressions is selected.
	Names       []string
	Expressions []*regexp.Regexp
	// Labels is a selector that the namespaces must also match; empty matches all.
	Labels string
	// NamedOnly is ScanningDisabled of the settings: namespaces are not watched.
	NamedOnly bool
}

// CheckAndNormalize returns the mistakes. It sorts the names, removes duplicates, and clears an invalid selector.
func (s *NamespaceScope) CheckAndNormalize() (problems []error) {
	for _, text := range s.Names {
		if err := namespaces.CheckPattern(text); err != nil {
			//nolint:staticcheck // the text begins with the name of a field
			problems = append(problems, fmt.Errorf("Namespaces: %w", err))
		}
	}
	// The order has no meaning; sorted names make the output stable.
	slices.Sort(s.Names)
	s.Names = slices.Compact(s.Names)
	for i, expression := range s.Expressions {
		if expression == nil {
			problems = append(problems, fmt.Errorf("NamespacePatterns[%d]: the regular expression is nil", i))
		}
	}
	if err := s.checkLabels(); err != nil {
		problems = append(problems, fmt.Errorf("NamespaceLabels: %w", err))
		s.Labels = ""
	}
	return problems
}

// ServedPatterns returns the patterns of the served namespaces. None means the whole cluster.
func (s *NamespaceScope) ServedPatterns() (all namespaces.Patterns) {
	for _, text := range s.Names {
		all = append(all, namespaces.ParsePattern(text))
	}
	for _, expression := range s.Expressions {
		all = append(all, namespaces.PatternFromRegexp(expression))
	}
	// An invalid selector was cleared by Check, so it does not restrict the patterns.
	by := s.LabelSelector()
	switch {
	case by == nil:
		return all
	case len(all) == 0:
		// Labels alone restrict all namespaces, and need a pattern to be attached to.
		all = namespaces.Patterns{namespaces.ParsePattern("*")}
	}
	return all.WithLabels(by)
}

// LabelSelector returns the selector for namespaces, or nil if all match.
func (s *NamespaceScope) LabelSelector() labels.Selector {
	if by, err := labels.Parse(s.Labels); err == nil && !by.Empty() {
		return by
	}
	return nil
}

// checkLabels returns the mistake of the label selector.
func (s *NamespaceScope) checkLabels() error {
	// This parser rejects the operators > and <, which the selectors of Kubernetes objects lack.
	switch _, err := metav1.ParseToLabelSelector(s.Labels); {
	case s.Labels == "":
		return nil
	case err != nil:
		return err
	case s.LabelSelector() == nil:
		return fmt.Errorf("%q selects all namespaces: leave it out", s.Labels)
	case s.NamedOnly:
		return errors.New("labels of namespaces are watched, which ScanningDisabled forbids: use one of both")
	default:
		return nil
	}
}
