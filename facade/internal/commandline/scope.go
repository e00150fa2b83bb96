package commandline

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
)

// scope selects the namespaces of a command.
type scope struct {
	namespaces    []string
	allNamespaces bool
}

// addFlags adds the flags. One and all are their help texts.
func (s *scope) addFlags(flags *pflag.FlagSet, one, all string) {
	flags.StringArrayVarP(
		&s.namespaces, "namespace", "n", nil,
		one+", or all that match a pattern, such as 'team-*' or '!kube-*'; may be given several times",
	)
	flags.BoolVarP(&s.allNamespaces, "all-namespaces", "A", false, all)
}

// checkFlags validates the flags, and removes duplicate patterns.
func (s *scope) checkFlags(cmd *cobra.Command) error {
	if s.allNamespaces && len(s.namespaces) > 0 {
		return asUsageError(cmd, errors.New("-n (--namespace) and -A (--all-namespaces) exclude each other"))
	}
	// Patterns are checked here, so that an invalid one is a usage error.
	for _, pattern := range s.namespaces {
		if err := namespaces.CheckPattern(pattern); err != nil {
			return asUsageError(cmd, fmt.Errorf("-n (--namespace): %w", err))
		}
	}
	// The order has no meaning, and duplicates would be served twice.
	slices.Sort(s.namespaces)
	s.namespaces = slices.Compact(s.namespaces)
	return nil
}

// isGiven reports whether the flags select anything.
func (s *scope) isGiven() bool { return s.allNamespaces || len(s.namespaces) > 0 }

// choosePatterns returns the patterns of the namespaces, none for the whole cluster. Flags take precedence over the
// program's settings. Said is false if neither selects anything.
func (s *scope) choosePatterns(ofProgram namespaces.Patterns) (patterns namespaces.Patterns, said bool) {
	if !s.isGiven() {
		return ofProgram, len(ofProgram) > 0
	}
	// An explicit -A overrides the namespaces of the program.
	for _, text := range s.namespaces {
		patterns = append(patterns, namespaces.ParsePattern(text))
	}
	return patterns, true
}
