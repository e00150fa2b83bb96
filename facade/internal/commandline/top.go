package commandline

import (
	"cmp"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterops"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/peering/election"
)

// topper is the command that shows which replica has which ranges.
type topper struct {
	base     baseCommand
	election electionFlags
}

// topCommand returns the command that shows how the replicas share the objects.
func topCommand(p Program) *cobra.Command {
	t := &topper{base: newBase(p, "top")}
	cmd := &cobra.Command{
		Use: "top", Short: "Show which replica has which ranges of objects",
		Long: "Show the replicas of an operator that shares its objects among them, with --shards of run: the ranges " +
			"of each replica, its objects, and its backlog, which are the objects with unfinished changes. A range " +
			"without an owner is not handled until a replica takes it, usually in less than 20 seconds. A replica " +
			"with another number of ranges waits until all others have ended.\n\nThe command reads the Leases of " +
			"the operator, by one request: in a pod those of its namespace, otherwise those of all namespaces, or " +
			"of the namespace of the kubeconfig if all may not be listed. The exit code is 1 if no replica " +
			"runs.",
		Example: topExamples, RunE: t.printReplicas,
	}
	flags := cmd.Flags()
	t.base.addServedFlags(flags)
	t.election.addID(flags)
	t.base.addOutput(cmd, "the `format`: text or json")
	t.base.finishFlags(cmd)
	return cmd
}

// printReplicas reads the Leases and prints the report.
func (t *topper) printReplicas(cmd *cobra.Command, _ []string) error {
	settings, config, err := t.base.connect(cmd, t.election.checkID)
	if err != nil {
		return err
	}
	report, err := clusterops.ReadReplicas(cmd.Context(), config, t.lookup(settings))
	if err != nil {
		return err
	}
	return t.base.printReport(cmd, report)
}

// lookup returns which Leases belong to the operator, by the same rules as those of run.
func (t *topper) lookup(settings serving.ManagerSettings) clusterops.LeaseLookup {
	served, _ := t.base.scope.choosePatterns(settings.Patterns)
	name := election.LeaseName(t.base.program.Name, served.Texts(), served.LabelSelector())
	l := clusterops.LeaseLookup{
		Operator: t.base.program.Name, Lease: types.NamespacedName{Name: cmp.Or(t.election.ID, name)},
		Fallback: t.base.defaultNamespace,
	}
	if !t.base.cluster.SelectsFile() {
		l.Lease.Namespace = credentials.PodNamespace()
	}
	return l
}
