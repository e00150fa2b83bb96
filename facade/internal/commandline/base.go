package commandline

import (
	"log/slog"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/connection"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
)

// base is what all commands have in common that work on a cluster.
type base struct {
	program     Program
	environment *environment
	cluster     serving.Cluster
	scope       scope
	log         logFlags
}

func newBase(p Program, command string) base {
	return base{program: p, environment: environmentOf(command)}
}

// add adds the flags to a command, where those of the scope mean what is said. Kopf has the same, but those of the
// cluster.
func (b *base) add(cmd *cobra.Command, one, all string) {
	flags := cmd.Flags()
	b.addCluster(flags)
	b.scope.add(flags, one, all)
	b.log.add(flags)
}

// addCluster adds the flags that say which cluster is meant.
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

// connect logs in as kubectl does: handlers of logins are for the operator alone, and come after its startup.
func (b *base) connect(settings serving.Settings) (*rest.Config, error) {
	info, err := connection.Login(b.cluster.Kubeconfig, b.cluster.Context)
	if err != nil {
		return nil, err
	}
	config := rest.AddUserAgent(rest.CopyConfig(info.Config), b.program.Name)
	settings.Connection.Apply(config)
	return config, nil
}

// finish is for a command that has all of its flags: it has the environment stand in for them, and shells complete
// their values.
func (b *base) finish(cmd *cobra.Command) {
	b.environment.standIn(cmd.Flags())
	complete(cmd, b.contexts)
}

// contexts are those of the kubeconfig, for shells that complete what is typed.
func (b *base) contexts(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return connection.Contexts(b.cluster.Kubeconfig), cobra.ShellCompDirectiveNoFileComp
}

// check completes the flags from the environment, and checks them, first those that this command alone has.
func (b *base) check(cmd *cobra.Command, own func() error) error {
	if b.program.Err != nil {
		return b.program.Err
	}
	if err := b.environment.read(cmd); err != nil {
		return err
	}
	for _, check := range []func() error{
		func() error { return b.scope.check(cmd) }, func() error { return b.log.check(cmd) }, own,
	} {
		if err := check(); err != nil {
			return b.environment.explained(err)
		}
	}
	return nil
}

// logger is the one that the flags ask for, and that all libraries have from now on.
func (b *base) logger(cmd *cobra.Command, handler slog.Handler) (logr.Logger, error) {
	log, err := b.log.logger(cmd, b.program.Name, handler)
	if err != nil {
		return log, b.environment.explained(err)
	}
	b.log.use(log, handler != nil)
	return log, nil
}

// hintAtScope says that nobody has said what is to be served.
func hintAtScope(log logr.Logger) {
	logging.Warn(log, "Neither -n nor -A is given: the whole cluster is served. Say -A to confirm that, or "+
		"-n to choose namespaces")
}

// complete has shells complete the values of flags.
func complete(cmd *cobra.Command, contexts cobra.CompletionFunc) {
	nothing := cobra.FixedCompletions(nil, cobra.ShellCompDirectiveNoFileComp)
	cmd.ValidArgsFunction = nothing
	formats := cobra.FixedCompletions([]string{"plain", "full", "json"}, cobra.ShellCompDirectiveNoFileComp)
	for flag, values := range map[string]cobra.CompletionFunc{"log-format": formats, "context": contexts} {
		_ = cmd.RegisterFlagCompletionFunc(flag, values) // it fails for flags that there are not
	}
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if _, known := cmd.GetFlagCompletionFunc(flag.Name); !known && flag.Name != "kubeconfig" {
			_ = cmd.RegisterFlagCompletionFunc(flag.Name, nothing)
		}
	})
}
