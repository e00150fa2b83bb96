package commandline

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
)

// scope is for which namespaces a command is about.
type scope struct {
	namespaces []string
	all        bool
}

func (s *scope) add(flags *pflag.FlagSet, one, all string) {
	flags.StringArrayVarP(&s.namespaces, "namespace", "n", nil, one+"; may be given several times")
	flags.BoolVarP(&s.all, "all-namespaces", "A", false, all)
}

// check checks the flags against each other, and brings the namespaces into their shortest form.
func (s *scope) check(cmd *cobra.Command) error {
	if s.all && len(s.namespaces) > 0 {
		return asUsage(cmd, errors.New("-n (--namespace) and -A (--all-namespaces) exclude each other"))
	}
	names, err := UniqueNamespaces(s.namespaces)
	if err != nil {
		return asUsage(cmd, fmt.Errorf("-n (--namespace): %w", err))
	}
	s.namespaces = names
	return nil
}

// choose gives the namespaces that are meant, none for the whole cluster, and tells whether somebody has said so.
func (s *scope) choose(ofProgram []string) (names []string, said bool) {
	switch {
	case s.all:
		return nil, true
	case len(s.namespaces) > 0:
		return s.namespaces, true
	default:
		return ofProgram, len(ofProgram) > 0
	}
}

// UniqueNamespaces gives the names once each: a namespace given twice would be watched, and handled, twice. It is an
// error if one cannot be the name of a namespace.
func UniqueNamespaces(names []string) ([]string, error) {
	for _, name := range names {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return nil, fmt.Errorf("%q is not the name of a namespace: %s", name, problems[0])
		}
	}
	unique := slices.Clone(names)
	slices.Sort(unique)
	return slices.Compact(unique), nil
}
