package commandline

import (
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
)

// preflighter is the command that checks a cluster, with its flags.
type preflighter struct {
	base  baseCommand
	needs needsFlags
	as    string // --as
}

// preflightCommand returns the command that checks whether a cluster has what the operator needs.
func preflightCommand(p Program) *cobra.Command {
	f := &preflighter{base: newBase(p, "preflight")}
	cmd := &cobra.Command{
		Use: "preflight", Short: "Check whether the cluster has what the operator needs",
		Long: "Check the cluster before the operator runs: the permissions of its handlers, the kinds and their " +
			"versions, status subresources, fields that the API server would drop, and the clock. Each problem has " +
			"its handlers and a fix. Nothing is changed. The permissions are those of the current user: run the " +
			"command in the pod, or with --as. What may not be read is unknown, which is not a failure. Startup " +
			"handlers are not called, so settings by them are not known.\n\n" +
			"The exit code is 0 if no check has failed, and 1 otherwise.",
		Example: preflightExamples, RunE: f.checkCluster,
	}
	flags := cmd.Flags()
	f.base.addServedFlags(flags)
	f.needs.addFlags(cmd)
	flags.StringVar(
		&f.as, "as", "", "check the permissions of this `user`, such as system:serviceaccount:NAMESPACE:NAME",
	)
	f.base.addOutput(cmd, "the `format` of the report: text or json")
	f.base.finishFlags(cmd)
	return cmd
}

// checkCluster makes the checks and prints the report.
func (f *preflighter) checkCluster(cmd *cobra.Command, _ []string) error {
	_, config, err := f.base.connect(cmd, f.needs.checkFlags)
	if err != nil {
		return err
	}
	// In a pod, its namespace is that of the operator. For another user, it is that of the service account.
	namespace := credentials.PodNamespace()
	if f.as != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: f.as}
		namespace = serviceAccountNamespace(f.as)
	}
	report, err := f.base.program.Preflight(cmd.Context(), f.needs.values(f.base.scope), config, namespace)
	if err != nil {
		return err
	}
	return f.base.printReport(cmd, report)
}

// serviceAccountNamespace returns the namespace of a user that is a service account; empty for other users.
func serviceAccountNamespace(user string) string {
	if parts := strings.Split(user, ":"); len(parts) == 4 && parts[0] == "system" && parts[1] == "serviceaccount" {
		return parts[2]
	}
	return ""
}
