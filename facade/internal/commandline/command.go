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

	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
)

// Operator is what a command line needs of an operator.
type Operator interface {
	// Settings are those that the manager is made with, as they are now. All errors of registrations come out here,
	// before a cluster is needed.
	Settings() (serving.Settings, error)
	// Around calls serve between the startup and the cleanup of the operator, with what the flags say. The startup may
	// change the settings; if it does not succeed, serve is not called.
	Around(ctx context.Context, given Given, serve func() error) error
	// SetupWithManager adds the operator to the manager. The default namespace is that of the credentials, if they have
	// one, at any time.
	SetupWithManager(m ctrl.Manager, defaultNamespace func() string) error
}

// Program is an operator under the name that people know it by.
type Program struct {
	// Name is the name of the operator; it is also its user agent. If it is empty, there is none to be shown.
	Name string
	// Operator is what is run.
	Operator Operator
	// Webhooks has its webhook configurations.
	Webhooks Webhooks
	// Err is why the operator cannot be run, whatever the flags say; nil if it can.
	Err error
}

// displayName is the name for texts.
func (p Program) displayName() string {
	if p.Operator == nil {
		return "(none)"
	}
	return p.Name
}

// fromEnvironment is what the help of all commands says.
const fromEnvironment = "Flags that are not given are read from the environment variables in brackets. There, " +
	"namespaces stand between spaces."

// New makes the command, with the sub-commands of Kopf, of which "run" does the same as the command itself. Its context
// ends the operator.
func New(p Program) *cobra.Command {
	r := &runner{base: newBase(p, "run")}
	root := &cobra.Command{
		Use:   filepath.Base(os.Args[0]),
		Short: "Run the operator " + p.displayName(),
		Long: "Run the operator " + p.displayName() +
			": watch the cluster, and handle what changes in it until it is told to stop.\n\n" + fromEnvironment,
		Version:       version(),
		Args:          noArguments,
		RunE:          r.run,
		SilenceUsage:  true, // an error must not drown in it
		SilenceErrors: false,
	}
	root.Example = runExamples(root.Name())
	root.SetVersionTemplate(p.displayName() + " {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return asUsage(cmd, err) })
	r.add(root)

	run := &cobra.Command{
		Use: "run", Short: "Run the operator; the default command", Long: root.Long,
		Example: runExamples(root.Name() + " run"), Args: noFiles, RunE: r.run,
	}
	r.add(run)
	root.AddCommand(
		run, freezeCommand(p, root.Name()), resumeCommand(p, root.Name()), webhooksCommand(p, root.Name()),
		explainCommand(p, root.Name()),
		versionCommand(p),
	)
	refineCommandsOfCobra(root)
	return root
}

// usage is the exit code of a wrong command line.
const usage = 2

// ExitCode is 0 for nil, 2 for a wrong command line, 1 for any other error.
func ExitCode(err error) int {
	var wrong *usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &wrong):
		return usage
	default:
		return 1
	}
}

// usageError is a wrong command line: the exit code is 2.
type usageError struct{ err error }

// Error has a hint where to read on.
func (e *usageError) Error() string { return e.err.Error() }

func (e *usageError) Unwrap() error { return e.err }

func asUsage(cmd *cobra.Command, err error) error {
	return &usageError{fmt.Errorf("%w\nRun '%s --help' to see what there is", err, cmd.CommandPath())}
}

// noArguments refuses arguments, and suggests the sub-commands that they may stand for.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2 // edits, as cobra has it
	hint := ""
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		hint = "; did you mean " + strings.Join(similar, " or ") + "?"
	}
	return asUsage(cmd, fmt.Errorf("unknown command or argument %q%s", args[0], hint))
}
