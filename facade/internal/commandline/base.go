package commandline

import (
	"log/slog"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/connection"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
)

// baseCommand is the common part of all commands that work on a cluster. A command adds its flags and calls
// [baseCommand.finishFlags]; when it runs, it calls [baseCommand.readAndCheck] before it uses any of them.
type baseCommand struct {
	program     Program
	environment *environment          // binds the flags to variables
	cluster     serving.ClusterConfig // --kubeconfig and --context
	scope       scope                 // -n and -A
	log         logFlags
}

// newBase returns the base of a command. The name of the command determines its environment variables.
func newBase(p Program, command string) baseCommand {
	return baseCommand{program: p, environment: environmentOf(command)}
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

// logIn logs in as kubectl does. Login handlers are not used: they belong to the running operator, and run only after
// its startup.
func (b *baseCommand) logIn(settings serving.ManagerSettings) (*rest.Config, error) {
	// Errors of the login name the ways to configure a cluster.
	info, err := connection.Login(b.cluster.Kubeconfig, b.cluster.Context)
	if err != nil {
		return nil, err
	}
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
	return connection.ContextNames(b.cluster.Kubeconfig), cobra.ShellCompDirectiveNoFileComp
}

// readAndCheck sets missing flags from the environment and validates all of them. The common flags are checked before
// those of the command.
func (b *baseCommand) readAndCheck(cmd *cobra.Command, own func() error) error {
	// If the operator cannot run, this error is more helpful than one about flags.
	if b.program.Err != nil {
		return b.program.Err
	}
	// The variables are read first, so that the checks below cover their values as well.
	if err := b.environment.setMissingFlags(cmd); err != nil {
		return err
	}
	for _, check := range []func() error{
		func() error { return b.scope.checkFlags(cmd) }, func() error { return b.log.checkFlags(cmd) }, own,
	} {
		if err := check(); err != nil {
			// The value can come from a variable that the user has forgotten.
			return b.environment.listVariables(err)
		}
	}
	return nil
}

// newLogger returns the logger that the flags describe, and makes all libraries use it.
func (b *baseCommand) newLogger(cmd *cobra.Command, handler slog.Handler) (logr.Logger, error) {
	log, err := b.log.newLogger(cmd, b.program.Name, handler)
	if err != nil {
		return log, b.environment.listVariables(err)
	}
	// Libraries log during the connection already, so they are redirected before it.
	b.log.redirectLibraries(log, handler != nil)
	return log, nil
}

// warnAboutScope warns that the whole cluster is served although this was not requested. Kopf warns as well.
func warnAboutScope(log logr.Logger) {
	logging.Warn(log, "Neither -n nor -A is given: the whole cluster is served. Say -A to confirm that, or "+
		"-n to choose namespaces")
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
