package commandline

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
)

// PlanRequest says what to predict.
type PlanRequest struct {
	// Cluster is the connection; nil if Load is set.
	Cluster *rest.Config
	// Load is a file with the objects of a cluster.
	Load string
	// FromKopf predicts the take-over of a Python operator: the operator would use Kopf's storages.
	FromKopf bool
	// Flags override the settings of the operator.
	Flags serving.RunFlags
}

// PlanReport is what the operator would do.
type PlanReport interface {
	// HasChanges reports whether creations, updates or deletions would be handled.
	HasChanges() bool
	// WriteText writes the report for users, with at most so many objects of each handler; negative is all.
	WriteText(w io.Writer, most int) error
}

// errPlanned has the exit code of a plan with changes. It is not printed.
var errPlanned error = &usageError{errors.New("changes would be handled")}

// planner is the command that predicts what the operator would do.
type planner struct {
	base     baseCommand
	request  PlanRequest
	most     int  // --limit
	complete bool // --all
}

// planCommand returns the command that predicts what the operator would do when it starts.
func planCommand(p Program) *cobra.Command {
	f := &planner{base: newBase(p, "plan")}
	cmd := &cobra.Command{
		Use: "plan", Short: "Show what this version would do in a cluster, without doing it",
		Long: "Show for which objects this version of the operator would call its handlers when it starts, and why. " +
			"Objects are only read: nothing is written, and no handler is called. Filters and index functions are " +
			"called, startup handlers are not, so their settings are not known. It needs the permission to list the " +
			"handled kinds, and uses your kubeconfig.\n\nThe exit code is 0 if no change would be handled, 2 if " +
			"creations, updates or deletions would be handled, and 1 after an error.",
		Example: planExamples, RunE: f.runPlan,
		Args: func(cmd *cobra.Command, args []string) error { return withoutUsageCode(rejectArguments(cmd, args)) },
	}
	flags := cmd.Flags()
	f.base.addFlags(cmd, "the objects of this `namespace`", "the objects of the whole cluster")
	f.base.addOutput(cmd, "the `format`: text or json")
	flags.IntVar(&f.most, "limit", 10, "the `number` of objects to show for each handler, in text")
	flags.BoolVar(&f.complete, "all", false, "show all objects, in text")
	flags.StringVar(
		&f.request.Load, "load", "",
		"a `file` with the output of kubectl get -o yaml, instead of a cluster; - is the standard input",
	)
	flags.BoolVar(
		&f.request.FromKopf, "from-kopf", false,
		"show the take-over of a Python operator, with the storages of kopf.AsKopf",
	)
	f.base.finishFlags(cmd)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return withoutUsageCode(asUsageError(cmd, err)) })
	return cmd
}

// withoutUsageCode returns the error with the exit code 1: the code 2 says that changes would be handled.
func withoutUsageCode(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s", err.Error())
}

// runPlan makes and prints the report.
func (f *planner) runPlan(cmd *cobra.Command, _ []string) error {
	report, err := f.makeReport(cmd)
	if err != nil {
		return withoutUsageCode(err)
	}
	if f.complete {
		f.most = -1
	}
	if f.base.output == "json" {
		encoder := json.NewEncoder(cmd.OutOrStdout())
		encoder.SetIndent("", "  ")
		err = encoder.Encode(report)
	} else {
		err = report.WriteText(cmd.OutOrStdout(), f.most)
	}
	switch {
	case err != nil:
		return fmt.Errorf("printing the plan: %w", err)
	case report.HasChanges():
		cmd.SilenceErrors = true // the report says it
		return errPlanned
	}
	return nil
}

// checkFlags validates the flags of the command.
func (f *planner) checkFlags(cmd *cobra.Command) error {
	switch {
	case f.most < 0:
		return asUsageError(cmd, fmt.Errorf("--limit: %d is negative; see --all", f.most))
	case f.request.Load != "" && (f.base.cluster.Kubeconfig != "" || f.base.cluster.Context != ""):
		return asUsageError(cmd, errors.New("--load excludes --kubeconfig and --context"))
	}
	return nil
}

// makeReport connects to the cluster, unless a file is given, and makes the report.
func (f *planner) makeReport(cmd *cobra.Command) (PlanReport, error) {
	settings, log, err := f.base.prepareWithLog(cmd, f.checkFlags)
	if err != nil {
		return nil, err
	}
	f.request.Flags.Namespaces, f.request.Flags.HasScope = f.base.scope.namespaces, f.base.scope.isGiven()
	if f.request.Load == "" {
		if f.request.Cluster, err = f.base.logIn(settings); err != nil {
			return nil, err
		}
	}
	return f.base.program.Plan(logf.IntoContext(cmd.Context(), log.WithName(f.base.program.Name)), f.request)
}
