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

// base is the common part of all commands that work on a cluster. A command adds its flags and calls [base.finish];
// when it runs, it calls [base.check] before it uses any of them.
type base struct {
	program     Program
	environment *environment    // binds the flags to variables
	cluster     serving.Cluster // --kubeconfig and --context
	scope       scope           // -n and -A
	log         logFlags
}

// newBase returns the base of a command. The name of the command determines its environment variables.
func newBase(p Program, command string) base {
	return base{program: p, environment: environmentOf(command)}
}

// add adds the flags of the cluster, the scope and the log. One and all are the help texts of the scope's flags. Kopf
// has the same flags, except those of the cluster.
func (b *base) add(cmd *cobra.Command, one, all string) {
	flags := cmd.Flags()
	b.addCluster(flags)
	b.scope.add(flags, one, all)
	b.log.add(flags)
}

// addCluster adds the flags that select the cluster.
func (b *base) addCluster(flags *pflag.FlagSet) {
	flags.StringVar(
		&b.cluster.Kubeconfig, "kubeconfig", "",
		"the `file` that says which cluster; default: $KUBECONFIG, or the cluster around the process, or "+
			"~/.kube/config",
	)
	flags.StringVar(
		&b.cluster.Context, "context", "", "the `name` of the context in these files; default: the current one",
	)
}

// connect logs in as kubectl does. Login handlers are not used: they belong to the running operator, and run only after
// its startup.
func (b *base) connect(settings serving.Settings) (*rest.Config, error) {
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

// finish must be called when the command has all of its flags: it binds them to environment variables and adds shell
// completion.
func (b *base) finish(cmd *cobra.Command) {
	b.environment.standIn(cmd.Flags())
	complete(cmd, b.contexts)
}

// contexts completes the names of contexts in the kubeconfig.
func (b *base) contexts(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return connection.Contexts(b.cluster.Kubeconfig), cobra.ShellCompDirectiveNoFileComp
}

// check sets missing flags from the environment and validates all of them. The common flags are checked before those of
// the command.
func (b *base) check(cmd *cobra.Command, own func() error) error {
	// If the operator cannot run, this error is more helpful than one about flags.
	if b.program.Err != nil {
		return b.program.Err
	}
	// The variables are read first, so that the checks below cover their values as well.
	if err := b.environment.read(cmd); err != nil {
		return err
	}
	for _, check := range []func() error{
		func() error { return b.scope.check(cmd) }, func() error { return b.log.check(cmd) }, own,
	} {
		if err := check(); err != nil {
			// The value can come from a variable that the user has forgotten.
			return b.environment.explained(err)
		}
	}
	return nil
}

// logger returns the logger that the flags describe, and makes all libraries use it.
func (b *base) logger(cmd *cobra.Command, handler slog.Handler) (logr.Logger, error) {
	log, err := b.log.logger(cmd, b.program.Name, handler)
	if err != nil {
		return log, b.environment.explained(err)
	}
	// Libraries log during the connection already, so they are redirected before it.
	b.log.use(log, handler != nil)
	return log, nil
}

// hintAtScope warns that the whole cluster is served although this was not requested. Kopf warns as well.
func hintAtScope(log logr.Logger) {
	logging.Warn(log, "Neither -n nor -A is given: the whole cluster is served. Say -A to confirm that, or "+
		"-n to choose namespaces")
}

// complete adds shell completion for the values of flags. Without it, shells suggest files for each of them.
func complete(cmd *cobra.Command, contexts cobra.CompletionFunc) {
	// Most values are free text, for which a list of files would be misleading.
	nothing := cobra.FixedCompletions(nil, cobra.ShellCompDirectiveNoFileComp)
	cmd.ValidArgsFunction = nothing
	formats := cobra.FixedCompletions([]string{"plain", "full", "json"}, cobra.ShellCompDirectiveNoFileComp)
	for flag, values := range map[string]cobra.CompletionFunc{"log-format": formats, "context": contexts} {
		_ = cmd.RegisterFlagCompletionFunc(flag, values) // it fails for commands without this flag
	}
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		// The shell itself completes the names of files.
		isFile := flag.Name == "kubeconfig" || strings.HasSuffix(flag.Name, "-file")
		if _, known := cmd.GetFlagCompletionFunc(flag.Name); !known && !isFile {
			_ = cmd.RegisterFlagCompletionFunc(flag.Name, nothing)
		}
	})
}
