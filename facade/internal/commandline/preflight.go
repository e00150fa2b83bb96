package commandline

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterneeds"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/connection"
)

// Preflight checks what an operator needs in a cluster. The namespace is that of the operator's pods; empty if it is
// not known.
type Preflight func(
	ctx context.Context, given RunFlags, config *rest.Config, namespace string,
) (clusterneeds.CheckReport, error)

// preflighter is the command that checks a cluster, with its flags.
type preflighter struct {
	base   baseCommand
	needs  needsFlags
	as     string // --as
	output string // --output: text or json
}

// preflightCommand returns the command that checks whether a cluster has what the operator needs.
func preflightCommand(p Program, program string) *cobra.Command {
	f := &preflighter{base: newBase(p, "preflight")}
	cmd := &cobra.Command{
		Use: "preflight", Short: "Check whether the cluster has what the operator needs", Args: rejectArguments,
		Long: "Check the cluster before the operator runs: the permissions of its handlers, the kinds and their " +
			"versions, status subresources, fields that the API server would drop, and the clock. Each problem has " +
			"its handlers and a fix. Nothing is changed. The permissions are those of the current user: run the " +
			"command in the pod, or with --as. What may not be read is unknown, which is not a failure. Startup " +
			"handlers are not called, so what they set is not known.\n\n" +
			"The exit code is 0 if no check has failed, and 1 otherwise.\n\n" + environmentHelp,
		Example: preflightExamples(program), RunE: f.checkCluster,
	}
	flags := cmd.Flags()
	f.base.addClusterFlags(flags)
	f.base.scope.addFlags(flags, "the operator serves this `namespace`", "the operator serves the whole cluster")
	f.needs.addFlags(cmd)
	flags.StringVar(
		&f.as, "as", "", "check the permissions of this `user`, such as system:serviceaccount:NAMESPACE:NAME",
	)
	flags.StringVarP(&f.output, "output", "o", "text", "the `format` of the report: text or json")
	formats := cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp)
	_ = cmd.RegisterFlagCompletionFunc("output", formats) // it fails only for unknown flags
	f.base.finishFlags(cmd)
	return cmd
}

// checkFlags validates the flags of the command.
func (f *preflighter) checkFlags(cmd *cobra.Command) error {
	if f.output != "text" && f.output != "json" {
		return asUsageError(cmd, fmt.Errorf("-o (--output): %q is neither text nor json", f.output))
	}
	return f.needs.checkFlags(cmd)
}

// checkCluster makes the checks and prints the report.
func (f *preflighter) checkCluster(cmd *cobra.Command, _ []string) error {
	if f.base.program.Err != nil {
		return f.base.program.Err
	}
	// This command has no flags of the log, so it does not use the common check.
	if err := f.base.environment.setMissingFlags(cmd); err != nil {
		return err
	}
	if err := cmp.Or(f.base.scope.checkFlags(cmd), f.checkFlags(cmd)); err != nil {
		return f.base.environment.listVariables(err)
	}
	settings, err := f.base.program.Operator.Settings()
	if err != nil {
		return err
	}
	config, err := f.base.logIn(settings)
	if err != nil {
		return err
	}
	// In a pod, its namespace is that of the operator. For another user, it is that of the service account.
	namespace := connection.PodNamespace()
	if f.as != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: f.as}
		namespace = serviceAccountNamespace(f.as)
	}
	report, err := f.base.program.Preflight(cmd.Context(), f.needs.values(f.base.scope), config, namespace)
	if err != nil {
		return err
	}
	write := report.WriteText
	if f.output == "json" {
		write = report.WriteJSON
	}
	return cmp.Or(write(cmd.OutOrStdout()), report.Err())
}

// serviceAccountNamespace returns the namespace of a user that is a service account; empty for other users.
func serviceAccountNamespace(user string) string {
	if parts := strings.Split(user, ":"); len(parts) == 4 && parts[0] == "system" && parts[1] == "serviceaccount" {
		return parts[2]
	}
	return ""
}
