package commandline

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/utils/ptr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/draining"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
)

// drainer is the command that removes everything of the operator from a cluster.
type drainer struct {
	base      baseCommand
	request   draining.Drain
	peering   string // --peering
	election  electionFlags
	deletions string        // --deletions
	timeout   time.Duration // --deletion-timeout
	confirmed bool          // --yes
}

// drainCommand returns the command that removes everything of the operator from a cluster.
func drainCommand(p Program) *cobra.Command {
	d := &drainer{base: newBase(p, "drain")}
	cmd := &cobra.Command{
		Use: "drain", Short: "Remove everything that the operator has stored, before it is uninstalled",
		Long: "Remove everything that the operator has stored in the cluster: its finalizers, annotations and fields " +
			"on objects, the marks of children, its entries in webhook configurations, its peering records and its " +
			"Lease. Objects, children and owner references stay. No handler is called, except those of deletions " +
			"with --deletions=run. Scale the operator to zero first: a running one is an error. An operator that is " +
			"installed later handles each object as created, unless --keep-memory is given.\n\nThe command lists " +
			"everything that remains. It can be repeated at any time. The exit code is 1 if anything is left, and 2 " +
			"if --check has found anything. The command uses the cluster and the permissions of your kubeconfig.",
		Example: drainExamples,
		RunE:    d.drain,
	}
	flags := cmd.Flags()
	d.base.addFlags(cmd, "the objects of this `namespace`", "the objects of the whole cluster")
	flags.StringVarP(
		&d.peering, "peering", "P", "", "the `name` of the peering object; default: that of the settings",
	)
	d.election.addID(flags)
	flags.BoolVar(&d.request.Check, "check", false, "list what would be removed, and change nothing")
	flags.BoolVar(&d.request.KeepMemory, "keep-memory", false, "keep the annotations and fields on objects and "+
		"children, so that an operator that is installed later continues with them")
	flags.StringVar(&d.deletions, "deletions", "refuse", "for objects that are being deleted: `refuse` leaves them, "+
		"run calls their delete handlers in this process, and skip releases them without")
	flags.DurationVar(&d.timeout, "deletion-timeout", draining.DefaultDeletionTimeout, "how long the delete handlers "+
		"may take with --deletions=run")
	flags.BoolVar(&d.request.SharedToo, "shared-finalizer", false, "with AsKopf, also remove what operators of Kopf "+
		"share: the finalizer and the last-handled configuration")
	flags.BoolVar(&d.request.Freeze, "freeze", false, "pause the running operators of the peering first, for an hour; "+
		"they stay paused after it")
	flags.BoolVarP(&d.confirmed, "yes", "y", false, "confirm that the operator is not running, if that is unknown")
	d.base.finishFlags(cmd)
	return cmd
}

// checkFlags validates the flags that only this command has.
func (d *drainer) checkFlags(cmd *cobra.Command) error {
	switch d.deletions {
	case "refuse", "skip", "run":
	default:
		return asUsageError(cmd, fmt.Errorf("--deletions: %q is none of \"refuse\", \"run\" and \"skip\"", d.deletions))
	}
	if d.timeout <= 0 {
		return asUsageError(cmd, fmt.Errorf("--deletion-timeout: %s is not positive", d.timeout))
	}
	d.request.SkipDeletions = d.deletions == "skip"
	if d.request.Check && d.request.Freeze {
		return asUsageError(cmd, errors.New("--check and --freeze exclude each other: a check changes nothing"))
	}
	d.request.LeaseName = d.election.ID
	return cmp.Or(checkPeering(cmd, d.peering), d.election.checkID(cmd))
}

// drain drains the cluster and prints the report.
func (d *drainer) drain(cmd *cobra.Command, _ []string) error {
	settings, log, err := d.base.prepareWithLog(cmd, d.checkFlags)
	if err != nil {
		return err
	}
	if d.request.StoredState, err = d.base.program.Stored(); err != nil {
		return err
	}
	if d.request.SharedToo && !d.request.Shared {
		return asUsageError(cmd, errors.New("--shared-finalizer is only for operators with AsKopf: the finalizer of "+
			"this one is its own, and is removed anyway"))
	}
	request := d.request
	request.Peering.Name = cmp.Or(d.peering, request.Peering.Name)
	request.Peering.Standalone = request.Peering.Standalone && d.peering == ""
	// Without flags, the command means the same namespaces as the operator.
	var said bool
	if request.Namespaces, said = d.base.scope.choosePatterns(request.Patterns); !said {
		serving.WarnAboutScope(log)
	}
	request.Confirm = func(reason string) error { return d.confirm(cmd, reason) }
	if d.deletions == "run" {
		request.DeletionTimeout = d.timeout
		request.RunDeletions = func(ctx context.Context) error { return d.runDeletions(ctx, log) }
	}
	config, err := d.base.logIn(settings)
	if err != nil {
		return err
	}
	report, err := request.Run(logf.IntoContext(cmd.Context(), log.WithName(d.base.program.Name)), config)
	if report == nil {
		return fmt.Errorf("draining operator %q: %w", d.base.program.Name, err)
	}
	return d.printReport(cmd, report, err)
}

// runDeletions runs the operator for the objects that are being deleted, until the context ends. It takes no part in
// the peering or the election: the drain has made sure that no other process runs.
func (d *drainer) runDeletions(ctx context.Context, log logr.Logger) error {
	return d.base.program.Run(ctx, serving.RunOptions{ManagerLog: log, RunFlags: serving.RunFlags{
		Namespaces: d.base.scope.namespaces, HasScope: d.base.scope.isGiven(), Cluster: d.base.cluster,
		Peering: serving.PeeringFlags{Standalone: ptr.To(true)}, DeletionsOnly: true,
	}})
}

// printReport prints the report, and returns an error if anything is left or was found.
func (d *drainer) printReport(cmd *cobra.Command, report *draining.DrainReport, err error) error {
	if printing := report.Print(cmd.OutOrStdout()); printing != nil {
		return fmt.Errorf("printing the report: %w", printing)
	}
	switch name, count := d.base.program.Name, len(report.Items); {
	case err != nil:
		return fmt.Errorf("draining operator %q was interrupted; repeat the command: %w", name, err)
	case count == 0 && d.request.Check:
		cmd.Printf("Nothing of operator %q is left.\n", name)
		return nil
	case count == 0:
		cmd.Println(afterDrain(d.request.KeepMemory))
		return nil
	case d.request.Check:
		return &usageError{fmt.Errorf("operator %q has things at %d places, as listed", name, count)}
	default:
		return fmt.Errorf("operator %q was not drained completely: %d things are left, as listed", name, count)
	}
}

// afterDrain returns the consequence of a drain for a later installation.
func afterDrain(keepMemory bool) string {
	if keepMemory {
		return "Nothing holds the objects any more. The memory of the operator is kept: if it is installed again, it " +
			"continues with it."
	}
	return "Nothing of the operator is left. If it is installed again, it handles each object as created."
}

// confirm requires --yes, or an answer at the terminal.
func (d *drainer) confirm(cmd *cobra.Command, reason string) error {
	if d.confirmed {
		return nil
	}
	in, isFile := cmd.InOrStdin().(*os.File)
	if !isFile || !term.IsTerminal(int(in.Fd())) {
		return fmt.Errorf("%s: a running one would store everything again. Stop it, and confirm that by --yes", reason)
	}
	cmd.PrintErrf("Note that %s. A running one would store everything again. Is it stopped? [y/N] ", reason)
	answer, err := bufio.NewReader(in).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); err == nil && (answer == "y" || answer == "yes") {
		return nil
	}
	return errors.New("it was not confirmed that the operator is stopped, so nothing was changed")
}
