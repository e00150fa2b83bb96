package commandline

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/console"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
)

// baseCommand is the common part of all commands. A command adds its flags and calls [baseCommand.finishFlags]; when it
// runs, it calls [baseCommand.readFlags], or a method that does so, before it uses any of them.
type baseCommand struct {
	program     Program
	environment *environment          // binds the flags to variables
	cluster     serving.ClusterConfig // --kubeconfig and --context
	scope       scope                 // -n and -A
	log         logFlags
	output      string // --output of commands that print a report: text or json

	defaultNamespace string // of the kubeconfig, after logIn
}

// newBase returns the base of a command. The name of the command determines its environment variables. Flags that a
// command does not have keep these defaults, which are valid.
func newBase(p Program, command string) baseCommand {
	b := baseCommand{program: p, environment: environmentOf(command), output: "text"}
	b.log.Format = console.Full
	return b
}

// addFlags adds the flags of the cluster, the scope and the log. One and all are the help texts of the scope's flags.
// Kopf has the same flags, except those of the cluster.
func (b *baseCommand) addFlags(cmd *cobra.Command, one, all string) {
	flags := cmd.Flags()
	b.addClusterFlags(flags)
	b.scope.addFlags(flags, one, all)
	b.log.addFlags(flags)
}

// addClusterFlags adds the flags that select the cluster.
func (b *baseCommand) addClusterFlags(flags *pflag.FlagSet) {
	flags.StringVar(
		&b.cluster.Kubeconfig, "kubeconfig", "",
		"the `file` that says which cluster; default: $KUBECONFIG, or the cluster around the process, or "+
			"~/.kube/config",
	)
	flags.StringVar(
		&b.cluster.Context, "context", "", "the `name` of the context in these files; default: the current one",
	)
}

// addServedFlags adds the flags of the cluster and of the scope of the operator, for commands that do not run it.
func (b *baseCommand) addServedFlags(flags *pflag.FlagSet) {
	b.addClusterFlags(flags)
	b.scope.addFlags(flags, "the operator serves this `namespace`", "the operator serves the whole cluster")
}

// addOutput adds the flag for the format of a report.
func (b *baseCommand) addOutput(cmd *cobra.Command, help string) {
	cmd.Flags().StringVarP(&b.output, "output", "o", b.output, help)
	formats := cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp)
	_ = cmd.RegisterFlagCompletionFunc("output", formats) // it fails only for unknown flags
}

// checkOutput validates the format of a report.
func (b *baseCommand) checkOutput(cmd *cobra.Command) error {
	if b.output != "text" && b.output != "json" {
		return asUsageError(cmd, fmt.Errorf("-o (--output): %q is neither text nor json", b.output))
	}
	return nil
}

// report is the result of a command, for users and for programs.
type report interface {
	WriteText(to io.Writer) error
	WriteJSON(to io.Writer) error
	// Err returns an error if the report has a problem.
	Err() error
}

// printReport prints the report, and returns its error.
func (b *baseCommand) printReport(cmd *cobra.Command, r report) error {
	write := r.WriteText
	if b.output == "json" {
		write = r.WriteJSON
	}
	return cmp.Or(write(cmd.OutOrStdout()), r.Err())
}

// logIn logs in as kubectl does. Login handlers are not used: they belong to the running operator, and run only after
// its startup.
func (b *baseCommand) logIn(settings serving.ManagerSettings) (*rest.Config, error) {
	// Errors of the login name the ways to configure a cluster.
	info, err := credentials.Login(b.cluster.Kubeconfig, b.cluster.Context)
	if err != nil {
		return nil, err
	}
	b.defaultNamespace = info.DefaultNamespace
	// The copy keeps the credentials of the login unchanged.
	config := rest.AddUserAgent(rest.CopyConfig(info.Config), b.program.Name)
	// The timeouts and proxies of the operator apply to its commands as well.
	settings.Connection.Apply(config)
	return config, nil
}

// finishFlags must be called when the command has all of its flags: it binds them to environment variables and adds
// shell completion.
func (b *baseCommand) finishFlags(cmd *cobra.Command) {
	b.environment.bindFlags(cmd.Flags())
	addCompletion(cmd, b.completeContexts)
}

// completeContexts completes the names of contexts in the kubeconfig.
func (b *baseCommand) completeContexts(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return credentials.ContextNames(b.cluster.Kubeconfig), cobra.ShellCompDirectiveNoFileComp
}

// readFlags sets missing flags from the environment and validates all of them. The common flags are checked before
// those of the command.
func (b *baseCommand) readFlags(cmd *cobra.Command, own func(cmd *cobra.Command) error) error {
	// If the operator cannot run, this error is more helpful than one about flags.
	if b.program.Err != nil {
		return b.program.Err
	}
	// The variables are read first, so that the checks below cover their values as well.
	if err := b.environment.setMissingFlags(cmd); err != nil {
		return err
	}
	// The value can come from a variable that the user has forgotten.
	return b.environment.listVariables(
		cmp.Or(b.scope.checkFlags(cmd), b.log.checkFlags(cmd), b.checkOutput(cmd), own(cmd)),
	)
}

// prepare reads the flags, and returns the settings of the operator. Errors of registrations are reported before a
// connection is made.
func (b *baseCommand) prepare(
	cmd *cobra.Command, own func(cmd *cobra.Command) error,
) (settings serving.ManagerSettings, err error) {
	if err = b.readFlags(cmd, own); err == nil {
		settings, err = b.program.Settings()
	}
	return settings, err
}

// prepareWithLog also returns the logger that the flags describe, and makes all libraries use it.
func (b *baseCommand) prepareWithLog(
	cmd *cobra.Command, own func(cmd *cobra.Command) error,
) (settings serving.ManagerSettings, log logr.Logger, err error) {
	if settings, err = b.prepare(cmd, own); err != nil {
		return settings, log, err
	}
	if log, err = b.log.newLogger(cmd, b.program.Name, settings.LogHandler); err != nil {
		return settings, log, b.environment.listVariables(err)
	}
	// Libraries log during the connection already, so they are redirected before it.
	b.log.redirectLibraries(log, settings.LogHandler != nil)
	return settings, log, nil
}

// connect reads the flags, and returns the settings and the connection.
func (b *baseCommand) connect(
	cmd *cobra.Command, own func(cmd *cobra.Command) error,
) (settings serving.ManagerSettings, config *rest.Config, err error) {
	if settings, err = b.prepare(cmd, own); err == nil {
		config, err = b.logIn(settings)
	}
	return settings, config, err
}

// addCompletion adds shell completion for the values of flags. Without it, shells suggest files for each of them.
func addCompletion(cmd *cobra.Command, contexts cobra.CompletionFunc) {
	// Most values are free text, for which a list of files would be misleading.
	nothing := cobra.FixedCompletions(nil, cobra.ShellCompDirectiveNoFileComp)
	cmd.ValidArgsFunction = nothing
	formats := cobra.FixedCompletions([]string{"plain", "full", "json"}, cobra.ShellCompDirectiveNoFileComp)
	for flag, values := range map[string]cobra.CompletionFunc{"log-format": formats, "context": contexts} {
		_ = cmd.RegisterFlagCompletionFunc(flag, values) // it fails for commands without this flag
	}
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		// The shell itself completes the names of files.
		isFile := flag.Name == "kubeconfig" || flag.Name == "load" || strings.HasSuffix(flag.Name, "-file")
		if _, known := cmd.GetFlagCompletionFunc(flag.Name); !known && !isFile {
			_ = cmd.RegisterFlagCompletionFunc(flag.Name, nothing)
		}
	})
}
