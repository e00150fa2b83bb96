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

// variablePrefix begins the names of the environment variables that stand for flags. Kopf has the same.
const variablePrefix = "KOPF_RUN_"

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
const oneNamespace = variablePrefix + "NAMESPACE"

// flagsOfKopf are those for which Kopf reads a variable, and which there may not be here. Whoever sets the variable
// relies on it.
var flagsOfKopf = []string{"dev", "module", "peering", "priority"}

// alternatives are flags that answer one question: where the command line has one of them, the environment is not asked
// for any of them.
var alternatives = [][]string{{"verbose", "debug", "quiet"}, {"log-prefix", "no-log-prefix"}}

// variablesOf are the environment variables that stand for a flag.
func variablesOf(flag string) (all []string) {
	names, special := variables[flag]
	if !special {
		names = []string{strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))}
	}
	for _, name := range names {
		all = append(all, variablePrefix+name)
	}
	return all
}

// readable has the environment stand in for the flags, and the help say so.
func (r *runner) readable(flags *pflag.FlagSet) {
	flags.VisitAll(func(flag *pflag.Flag) {
		if from := variablesOf(flag.Name); len(from) > 0 {
			flag.Usage += " [$" + from[0] + "]"
			r.readFlags = append(r.readFlags, flag.Name)
		}
	})
}

// readEnvironment sets the flags that are not in the command line from the environment. An empty variable is none.
func (r *runner) readEnvironment(cmd *cobra.Command) error {
	for _, flag := range flagsOfKopf {
		if variable, _ := given(flag); variable != "" && cmd.Flags().Lookup(flag) == nil {
			return asUsage(cmd, fmt.Errorf("%s is set, and this operator has no flag --%s", variable, flag))
		}
	}
	var absent []string // all are looked at before any is set, which would count as being in the command line
	for _, flag := range r.readFlags {
		if !decided(cmd, flag) && !slices.Contains(absent, flag) {
			absent = append(absent, flag)
		}
	}
	for _, flag := range absent {
		if variable, value := given(flag); variable != "" {
			if err := r.set(cmd, flag, variable, value); err != nil {
				return err
			}
		}
	}
	if name := os.Getenv(oneNamespace); name != "" {
		return r.set(cmd, "namespace", oneNamespace, name)
	}
	return nil
}

// given is the first variable that is set for the flag.
func given(flag string) (variable, value string) {
	for _, variable := range variablesOf(flag) {
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
func (r *runner) set(cmd *cobra.Command, flag, variable, value string) (err error) {
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
	r.fromEnvironment = append(r.fromEnvironment, fmt.Sprintf("--%s (%s)", flag, variable))
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
func (r *runner) explained(err error) error {
	if len(r.fromEnvironment) == 0 || ExitCode(err) != usage {
		return err
	}
	return fmt.Errorf("%w\nOf the environment come %s", err, strings.Join(r.fromEnvironment, ", "))
}
