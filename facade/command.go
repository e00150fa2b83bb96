package facade

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Main runs the operator as the program: it reads the command line, serves until SIGTERM or Ctrl-C, and exits. It never
// returns. The second signal ends the process at once.
//
// The exit code is 0 after a graceful stop, 1 on errors, 2 for a wrong command line; errors go to stderr. For the
// flags, run the program with --help. To add flags or commands of your own, see [NewCommand]. Kopf: kopf run.
func Main(op *Operator) {
	//nolint:revive // leaving is what it is for
	os.Exit(ExitCode(NewCommand(op).ExecuteContext(ctrl.SetupSignalHandler())))
}

// ExitCode is what a program that executes a [NewCommand] exits with: 0 for nil, 2 for a wrong command line, 1 for
// any other error.
func ExitCode(err error) int {
	var usage *usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		return 2
	default:
		return 1
	}
}

// NewCommand is the command line of the operator, for programs that have more of it. Execute it with a context that
// ends when the operator shall stop. The command prints its errors; for the exit code, see [ExitCode].
func NewCommand(op *Operator) *cobra.Command {
	r := &runner{op: op}
	root := &cobra.Command{
		Use:   filepath.Base(os.Args[0]),
		Short: "Run the operator " + op.displayName(),
		Long: "Run the operator " + op.displayName() +
			": watch the cluster, and handle what changes in it until it is told to stop.",
		Version:       version(),
		Args:          noArguments,
		RunE:          r.run,
		SilenceUsage:  true, // an error must not drown in it
		SilenceErrors: false,
	}
	root.Example = examples(root.Name())
	root.SetVersionTemplate(op.displayName() + " {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return asUsage(cmd, err) })
	root.CompletionOptions.HiddenDefaultCmd = true
	r.commonFlags(root.PersistentFlags())
	r.runFlags(root.Flags())

	run := &cobra.Command{
		Use: "run", Short: "Run the operator; the default command", Long: root.Long, Example: examples(
			root.Name() + " run",
		),
		Args: noArguments, RunE: r.run,
	}
	r.runFlags(run.Flags())
	root.AddCommand(run)
	return root
}

func (op *Operator) displayName() string {
	if op == nil {
		return "(none)"
	}
	return op.name
}

func examples(command string) string {
	return strings.ReplaceAll(`  # The whole cluster that kubectl is set to:
  % -A

  # Two namespaces, with more to read:
  % -n team-a -n team-b --verbose

  # Another cluster, with logs for machines:
  % -A --kubeconfig ./cluster.yaml --log-format json`, "%", command)
}

// usageError is a wrong command line: the exit code is 2.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

func asUsage(cmd *cobra.Command, err error) error {
	return &usageError{fmt.Errorf("%w\nRun '%s --help' to see what there is", err, cmd.CommandPath())}
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return asUsage(cmd, fmt.Errorf("unknown command or argument %q", args[0]))
	}
	return nil
}
