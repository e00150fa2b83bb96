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

// environment binds the flags of one command to environment variables. A flag in the command line takes precedence over
// its variable, and the variable over the default. Kopf has the same rules.
type environment struct {
	prefix           string   // prefix of the variables, such as KOPF_RUN_
	flags            []string // flags that can be set by a variable
	appliedVariables []string // flags that were set by a variable, with its name, for errors
}

// environmentOf returns the environment of a command. Kopf has the same names of variables.
func environmentOf(command string) *environment {
	return &environment{prefix: "KOPF_" + strings.ToUpper(strings.ReplaceAll(command, "-", "_")) + "_"}
}

// variables lists the flags whose variables differ from the flag's name. A flag can have several variables. A flag that
// only negates another flag has no variable.
var variables = map[string][]string{
	"all-namespaces": {"CLUSTERWIDE"},
	"liveness":       {"LIVENESS_ENDPOINT"},
	"module":         {"MODULES"},
	"namespace":      {"NAMESPACES"},
	"no-log-prefix":  {},
	"peering":        {"PEERING", "PEERING_NAME"},
}

// legacyNamespaceVariable is a legacy variable of Kopf, from the time when it could serve only one namespace. It adds
// one namespace to all others.
const legacyNamespaceVariable = "KOPF_RUN_NAMESPACE"

// alternativeFlags are groups of flags for one setting. If one flag of a group is in the command line, the variables of
// the whole group are ignored: options take precedence over the environment.
var alternativeFlags = [][]string{{"verbose", "debug", "quiet"}, {"log-prefix", "no-log-prefix"}}

// variablesOf returns the variables for a flag in the order of precedence.
func (e *environment) variablesOf(flag string) (all []string) {
	// By default, the variable is the flag's name in capitals, with underscores.
	names, special := variables[flag]
	if !special {
		names = []string{strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))}
	}
	for _, name := range names {
		all = append(all, e.prefix+name)
	}
	return all
}

// bindFlags binds all flags of the set to their variables, and adds the first variable to the help text of each.
func (e *environment) bindFlags(flags *pflag.FlagSet) {
	flags.VisitAll(func(flag *pflag.Flag) {
		if from := e.variablesOf(flag.Name); len(from) > 0 {
			flag.Usage += " [$" + from[0] + "]"
			e.flags = append(e.flags, flag.Name)
		}
	})
}

// setMissingFlags sets the flags that are not in the command line from the environment. An empty variable counts as
// unset.
func (e *environment) setMissingFlags(cmd *cobra.Command) error {
	var absent []string // collected before any flag is set, since a set flag counts as given in the command line
	for _, flag := range e.flags {
		if !isDecided(cmd, flag) && !slices.Contains(absent, flag) {
			absent = append(absent, flag)
		}
	}
	for _, flag := range absent {
		// The error of an invalid value names the variable, not the flag.
		if variable, value := e.firstVariable(flag); variable != "" {
			if err := e.setFlag(cmd, flag, variable, value); err != nil {
				return err
			}
		}
	}
	// The legacy variable adds to the flags, even if -n is given.
	if name := os.Getenv(legacyNamespaceVariable); name != "" && strings.HasPrefix(legacyNamespaceVariable, e.prefix) {
		return e.setFlag(cmd, "namespace", legacyNamespaceVariable, name)
	}
	return nil
}

// firstVariable returns the first non-empty variable for the flag.
func (e *environment) firstVariable(flag string) (variable, value string) {
	for _, variable := range e.variablesOf(flag) {
		if value := os.Getenv(variable); value != "" {
			return variable, value
		}
	}
	return "", ""
}

// isDecided reports whether the command line contains the flag or one of its alternatives.
func isDecided(cmd *cobra.Command, flag string) bool {
	asked := []string{flag}
	for _, group := range alternativeFlags {
		if slices.Contains(group, flag) {
			asked = group
		}
	}
	return slices.ContainsFunc(asked, cmd.Flags().Changed)
}

// setFlag sets one flag. A list gets each word of the value.
func (e *environment) setFlag(cmd *cobra.Command, flag, variable, value string) (err error) {
	values := []string{value}
	switch cmd.Flags().Lookup(flag).Value.Type() {
	// Pflag accepts fewer words than Kopf does.
	case "bool":
		values[0], err = parseBoolean(value)
	case "stringArray":
		// Namespaces cannot contain spaces, and Kopf separates them in the same way.
		values = strings.Fields(value)
	}
	for _, one := range values {
		if err == nil {
			err = cmd.Flags().Set(flag, one)
		}
	}
	if err != nil {
		return asUsageError(cmd, fmt.Errorf("%s=%q: %w", variable, value, err))
	}
	e.appliedVariables = append(e.appliedVariables, fmt.Sprintf("--%s (%s)", flag, variable))
	return nil
}

// parseBoolean converts the words that Kopf accepts for booleans.
func parseBoolean(value string) (string, error) {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "1", "true", "t", "yes", "y", "on":
		return "true", nil
	case "0", "false", "f", "no", "n", "off":
		return "false", nil
	default:
		return "", errors.New("it is neither true nor false")
	}
}

// listVariables lists the variables that have set flags. A user does not see these in the command line that the error
// is about.
func (e *environment) listVariables(err error) error {
	// Other errors are not caused by flags.
	if len(e.appliedVariables) == 0 || ExitCode(err) != usageExitCode {
		return err
	}
	return fmt.Errorf("%w\nOf the environment come %s", err, strings.Join(e.appliedVariables, ", "))
}
