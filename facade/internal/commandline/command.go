package commandline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/draining"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
)

// OperatorProcess is the interface through which the command line uses an operator.
type OperatorProcess interface {
	// Settings returns the current settings for the manager. It also returns all errors of registrations, before a
	// connection to a cluster is needed.
	Settings() (serving.ManagerSettings, error)
	// Around calls serve between the startup and the cleanup of the operator, with the values of the flags. The startup
	// may change the settings. If it fails, serve is not called.
	Around(ctx context.Context, given RunFlags, serve func() error) error
	// SetupWithManager adds the operator to the manager. The function returns the default namespace of the current
	// credentials, if any; it can change with each login.
	SetupWithManager(m ctrl.Manager, defaultNamespace func() string) error
}

// Program is an operator with the data of its command line.
type Program struct {
	// Name is the name of the operator and also its user agent. It is empty without an operator.
	Name string
	// Operator is the operator to run.
	Operator OperatorProcess
	// Manifests returns the manifests of the operator.
	Manifests Manifests
	// Stored returns a description of everything that the operator stores in a cluster.
	Stored func() (draining.StoredState, error)
	// Preflight checks a cluster for the operator.
	Preflight Preflight
	// Plan predicts what the operator would do.
	Plan PlanFunc
	// Err is the reason why the operator cannot run with any flags; nil if it can.
	Err error
}

// displayName returns the name for help texts.
func (p Program) displayName() string {
	if p.Operator == nil {
		return "(none)"
	}
	return p.Name
}

// environmentHelp is a part of the help of all commands.
const environmentHelp = "Flags that are not given are read from the environment variables in brackets. There, " +
	"namespaces stand between spaces."

// New returns the root command with the sub-commands of Kopf and some more. The root command itself does the same as
// "run". When its context ends, the operator stops.
func New(p Program) *cobra.Command {
	// Both forms of the command share one runner and the variables KOPF_RUN_*.
	r := &runner{base: newBase(p, "run")}
	root := &cobra.Command{
		Use:   filepath.Base(os.Args[0]),
		Short: "Run the operator " + p.displayName(),
		Long: "Run the operator " + p.displayName() +
			": watch the cluster, and handle its changes until the process is stopped.\n\n" + environmentHelp,
		Version:       buildVersion(),
		Args:          rejectArguments,
		RunE:          r.runOperator,
		SilenceUsage:  true,  // a long usage text would hide the error
		SilenceErrors: false, // cobra prints the error
	}
	root.Example = runExamples(root.Name())
	// The flag --version prints the same line as the command version.
	root.SetVersionTemplate(p.displayName() + " {{.Version}}\n")
	// Errors of flags get the exit code of usage errors.
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return asUsageError(cmd, err) })
	r.addFlags(root)

	// The explicit command is for users of Kopf, who type "kopf run FILE".
	run := &cobra.Command{
		Use: "run", Short: "Run the operator; the default command", Long: root.Long,
		Example: runExamples(root.Name() + " run"), Args: rejectFiles, RunE: r.runOperator,
	}
	r.addFlags(run)
	root.AddCommand(
		run, freezeCommand(p, root.Name()), resumeCommand(p, root.Name()), manifestsCommand(p, root.Name()),
		preflightCommand(p, root.Name()), explainCommand(p, root.Name()), planCommand(p, root.Name()),
		retryCommand(p, root.Name()), pauseCommand(p, root.Name()), resumeObjectCommand(p, root.Name()),
		drainCommand(p, root.Name()), topCommand(p, root.Name()),
		versionCommand(p),
	)
	// All commands must exist before the changes.
	refineCobraCommands(root)
	return root
}

// usageExitCode is the exit code for a wrong command line, as in Kopf. The command plan returns it for changes.
const usageExitCode = 2

// ExitCode returns 0 for nil, 2 for a wrong command line and for a check or a plan that has found something, and 1 for
// any other error.
func ExitCode(err error) int {
	var wrong *usageError
	var found *foundError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &wrong), errors.As(err, &found):
		return usageExitCode
	default:
		return 1
	}
}

// usageError is the error for a wrong command line. Its exit code is 2.
type usageError struct{ err error }

// Error returns the text with a reference to the help.
func (e *usageError) Error() string { return e.err.Error() }

// Unwrap returns the error without its exit code.
func (e *usageError) Unwrap() error { return e.err }

// foundError is the error of a check, or of a plan, that has found something. Its exit code is 2.
type foundError struct{ err error }

// Error returns the text.
func (e *foundError) Error() string { return e.err.Error() }

// Unwrap returns the error without its exit code.
func (e *foundError) Unwrap() error { return e.err }

// asUsageError turns an error into a usage error that refers to the help of the command.
func asUsageError(cmd *cobra.Command, err error) error {
	return &usageError{fmt.Errorf("%w\nRun '%s --help' for usage", err, cmd.CommandPath())}
}

// rejectArguments rejects arguments, and suggests similar sub-commands.
func rejectArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2 // edits, the default of cobra, which it sets only in its own check
	// A typing error in a sub-command looks like an argument.
	hint := ""
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		hint = "; did you mean " + strings.Join(similar, " or ") + "?"
	}
	return asUsageError(cmd, fmt.Errorf("unknown command or argument %q%s", args[0], hint))
}
