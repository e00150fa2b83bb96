package commandline

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterops"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/connection"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/peering/election"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/namespaces"
)

// topper is the command that shows which replica has which ranges.
type topper struct {
	base     baseCommand
	election ElectionFlags
	output   string // --output: text or json
}

// topCommand returns the command that shows how the replicas share the objects.
func topCommand(p Program, program string) *cobra.Command {
	t := &topper{base: newBase(p, "top")}
	cmd := &cobra.Command{
		Use: "top", Short: "Show which replica has which ranges of objects", Args: rejectArguments,
		Long: "Show the replicas of an operator that shares its objects among them, with --shards of run: the ranges " +
			"of each replica, its objects, and its backlog, which are the objects with unfinished changes. A range " +
			"without an owner is not handled until a replica takes it, usually in less than 20 seconds. A replica " +
			"with another number of ranges waits until all others have ended.\n\nThe command reads the Leases of " +
			"the operator, by one request: in a pod those of its namespace, otherwise those of all namespaces, or " +
			"of the namespace of the kubeconfig if all may not be listed. The exit code is 1 if no replica " +
			"runs.\n\n" + environmentHelp,
		Example: topExamples(program), RunE: t.printReplicas,
	}
	flags := cmd.Flags()
	t.base.addClusterFlags(flags)
	t.base.scope.addFlags(flags, "the operator serves this `namespace`", "the operator serves the whole cluster")
	t.election.addID(flags)
	flags.StringVarP(&t.output, "output", "o", "text", "the `format`: text or json")
	t.base.finishFlags(cmd)
	formats := cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp)
	_ = cmd.RegisterFlagCompletionFunc("output", formats) // it fails only for unknown flags
	return cmd
}

// checkFlags validates the flags of the command.
func (t *topper) checkFlags(cmd *cobra.Command) error {
	if t.output != "text" && t.output != "json" {
		return asUsageError(cmd, fmt.Errorf("-o (--output): %q is neither text nor json", t.output))
	}
	return t.election.checkID(cmd)
}

// printReplicas reads the Leases and prints the report.
func (t *topper) printReplicas(cmd *cobra.Command, _ []string) error {
	if t.base.program.Err != nil {
		return t.base.program.Err
	}
	// This command has no flags of the log, so it does not use the common check.
	if err := t.base.environment.setMissingFlags(cmd); err != nil {
		return err
	}
	if err := cmp.Or(t.base.scope.checkFlags(cmd), t.checkFlags(cmd)); err != nil {
		return t.base.environment.listVariables(err)
	}
	settings, err := t.base.program.Operator.Settings()
	if err != nil {
		return err
	}
	config, err := t.base.logIn(settings)
	if err != nil {
		return err
	}
	lookup, err := t.lookup(settings)
	if err != nil {
		return err
	}
	report, err := clusterops.ReadReplicas(cmd.Context(), config, lookup)
	if err != nil {
		return err
	}
	write := report.WriteText
	if t.output == "json" {
		write = report.WriteJSON
	}
	return errors.Join(write(cmd.OutOrStdout()), report.Err())
}

// lookup returns which Leases belong to the operator, by the same rules as those of run.
func (t *topper) lookup(settings serving.ManagerSettings) (clusterops.LeaseLookup, error) {
	served := settings.Patterns
	if t.base.scope.isGiven() {
		served = nil
		for _, text := range t.base.scope.namespaces {
			served = append(served, namespaces.ParsePattern(text))
		}
	}
	info, err := connection.Login(t.base.cluster.Kubeconfig, t.base.cluster.Context)
	if err != nil {
		return clusterops.LeaseLookup{}, err
	}
	name := election.LeaseName(t.base.program.Name, served.Texts(), served.LabelSelector())
	l := clusterops.LeaseLookup{
		Operator: t.base.program.Name, Lease: types.NamespacedName{Name: cmp.Or(t.election.ID, name)},
		Fallback: info.DefaultNamespace,
	}
	if !t.base.cluster.SelectsFile() {
		l.Lease.Namespace = connection.PodNamespace()
	}
	return l, nil
}
