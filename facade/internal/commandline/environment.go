package commandline

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// environment has variables stand in for the flags of one command.
type environment struct {
	prefix string   // of the names, such as KOPF_RUN_
	flags  []string // those that it may have
	used   []string // those that it has, with their variables
}

// environmentOf is that of a command, by its name. Kopf has the same names.
func environmentOf(command string) *environment {
	return &environment{prefix: "KOPF_" + strings.ToUpper(command) + "_"}
}

// variables are those of flags that have another name in the environment, or several, or none, as the flag only takes
// back another one.
var variables = map[string][]string{
	"all-namespaces": {"CLUSTERWIDE"},
	"liveness":       {"LIVENESS_ENDPOINT"},
	"module":         {"MODULES"},
	"namespace":      {"NAMESPACES"},
	"no-log-prefix":  {},
	"peering":        {"PEERING", "PEERING_NAME"},
}

// oneNamespace is a namespace more, whatever else is said. Kopf had this before it served several.
const oneNamespace = "KOPF_RUN_NAMESPACE"

// alternatives are flags that answer one question: where the command line has one of them, the environment is not asked
// for any of them.
var alternatives = [][]string{{"verbose", "debug", "quiet"}, {"log-prefix", "no-log-prefix"}}

// variablesOf are the environment variables that stand for a flag.
func (e *environment) variablesOf(flag string) (all []string) {
	names, special := variables[flag]
	if !special {
		names = []string{strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))}
	}
	for _, name := range names {
		all = append(all, e.prefix+name)
	}
	return all
}

// standIn has the environment stand in for the flags, and the help say so.
func (e *environment) standIn(flags *pflag.FlagSet) {
	flags.VisitAll(func(flag *pflag.Flag) {
		if from := e.variablesOf(flag.Name); len(from) > 0 {
			flag.Usage += " [$" + from[0] + "]"
			e.flags = append(e.flags, flag.Name)
		}
	})
}

// read sets the flags that are not in the command line from the environment. An empty variable is none.
func (e *environment) read(cmd *cobra.Command) error {
	var absent []string // all are looked at before any is set, which would count as being in the command line
	for _, flag := range e.flags {
		if !decided(cmd, flag) && !slices.Contains(absent, flag) {
			absent = append(absent, flag)
		}
	}
	for _, flag := range absent {
		if variable, value := e.given(flag); variable != "" {
			if err := e.set(cmd, flag, variable, value); err != nil {
				return err
			}
		}
	}
	if name := os.Getenv(oneNamespace); name != "" && strings.HasPrefix(oneNamespace, e.prefix) {
		return e.set(cmd, "namespace", oneNamespace, name)
	}
	return nil
}

// given is the first variable that is set for the flag.
func (e *environment) given(flag string) (variable, value string) {
	for _, variable := range e.variablesOf(flag) {
		if value := os.Getenv(variable); value != "" {
			return variable, value
		}
	}
	return "", ""
}

// decided tells whether the command line answers what the flag is about.
func decided(cmd *cobra.Command, flag string) bool {
	asked := []string{flag}
	for _, group := range alternatives {
		if slices.Contains(group, flag) {
			asked = group
		}
	}
	return slices.ContainsFunc(asked, cmd.Flags().Changed)
}

// set sets one flag; of lists, it adds each word of the value.
func (e *environment) set(cmd *cobra.Command, flag, variable, value string) (err error) {
	values := []string{value}
	switch cmd.Flags().Lookup(flag).Value.Type() {
	case "bool":
		values[0], err = boolean(value)
	case "stringArray":
		values = strings.Fields(value)
	}
	for _, one := range values {
		if err == nil {
			err = cmd.Flags().Set(flag, one)
		}
	}
	if err != nil {
		return asUsage(cmd, fmt.Errorf("%s=%q: %w", variable, value, err))
	}
	e.used = append(e.used, fmt.Sprintf("--%s (%s)", flag, variable))
	return nil
}

// boolean takes the words that Kopf takes.
func boolean(value string) (string, error) {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "1", "true", "t", "yes", "y", "on":
		return "true", nil
	case "0", "false", "f", "no", "n", "off":
		return "false", nil
	default:
		return "", errors.New("it is neither true nor false")
	}
}

// explained says of a wrong command line what is not to be seen in it.
func (e *environment) explained(err error) error {
	if len(e.used) == 0 || ExitCode(err) != usage {
		return err
	}
	return fmt.Errorf("%w\nOf the environment come %s", err, strings.Join(e.used, ", "))
}
