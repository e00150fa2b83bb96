package commandline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterneeds"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/draining"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/manifests"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
)

// Program is an operator with the data of its command line.
type Program struct {
	// Process runs the operator. It is empty without an operator.
	serving.Process

	// Manifests returns the manifests of the operator as files, and hints for the user. The function cluster connects
	// to a cluster, if that is needed.
	Manifests func(
		ctx context.Context, given serving.RunFlags, options manifests.Options, cluster func() (*rest.Config, error),
	) (files []manifests.File, hints []string, err error)
	// Stored returns a description of everything that the operator stores in a cluster.
	Stored func() (draining.StoredState, error)
	// Preflight checks what the operator needs in a cluster. The namespace is that of the operator's pods; empty if it
	// is not known.
	Preflight func(
		ctx context.Context, given serving.RunFlags, config *rest.Config, namespace string,
	) (clusterneeds.CheckReport, error)
	// Plan predicts what the operator would do when it starts. It only reads.
	Plan func(ctx context.Context, given PlanRequest) (PlanReport, error)
	// Err is the reason why the operator cannot run with any flags; nil if it can.
	Err error
}

// displayName returns the name for help texts.
func (p Program) displayName() string {
	if p.RunnableOperator == nil {
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
			": watch the cluster, and handle its changes until the process is stopped.",
		Example:       runExamples,
		Version:       buildVersion(),
		RunE:          r.runOperator,
		SilenceUsage:  true,  // a long usage text would hide the error
		SilenceErrors: false, // cobra prints the error
	}
	// The flag --version prints the same line as the command version.
	root.SetVersionTemplate(p.displayName() + " {{.Version}}\n")
	// Errors of flags get the exit code of usage errors.
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return asUsageError(cmd, err) })
	r.addFlags(root)

	// The explicit command is for users of Kopf, who type "kopf run FILE".
	run := &cobra.Command{
		Use: "run", Short: "Run the operator; the default command", Long: root.Long,
		Example: strings.ReplaceAll(runExamples, "%", "% run"), Args: rejectFiles, RunE: r.runOperator,
	}
	r.addFlags(run)
	root.AddCommand(
		run, freezeCommand(p), resumeCommand(p), manifestsCommand(p), preflightCommand(p), explainCommand(p),
		planCommand(p), retryCommand(p), pauseCommand(p), resumeObjectCommand(p), drainCommand(p), topCommand(p),
		versionCommand(p),
	)
	// All commands must exist before the changes.
	for _, cmd := range append(root.Commands(), root) {
		cmd.Example = strings.ReplaceAll(cmd.Example, "%", root.Name())
		if cmd.Long != "" {
			cmd.Long += "\n\n" + environmentHelp
		}
		if cmd.Args == nil {
			cmd.Args = rejectArguments
		}
	}
	refineCobraCommands(root)
	return root
}

// usageExitCode is the exit code for a wrong command line, as in Kopf. Checks and plans that have found something
// return it as well.
const usageExitCode = 2

// ExitCode returns 0 for nil, 2 for a wrong command line and for a check or a plan that has found something, and 1 for
// any other error.
func ExitCode(err error) int {
	var wrong *usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &wrong):
		return usageExitCode
	default:
		return 1
	}
}

// usageError is an error with the exit code 2.
type usageError struct{ error }

// Unwrap returns the error without its exit code.
func (e *usageError) Unwrap() error { return e.error }

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

// refineCobraCommands makes the commands that cobra adds handle a wrong command line like all other commands. By
// default, some of them show their help instead and exit with 0, which hides errors in scripts.
func refineCobraCommands(root *cobra.Command) {
	// Cobra adds these commands only during Execute. Add them now, so that they can be changed.
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		// Without a subcommand for a shell, completion shows its help.
		case "completion":
			cmd.Args = rejectArguments
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			for _, shell := range cmd.Commands() {
				shell.Args = rejectArguments
			}
		// The arguments of help are the path of a command.
		case "help":
			cmd.Args = func(cmd *cobra.Command, args []string) error {
				topic, unknown, err := cmd.Root().Find(args)
				if err != nil {
					return err
				}
				return rejectArguments(topic, unknown)
			}
		}
	}
}

// versionCommand returns the command that prints the same as the flag --version.
func versionCommand(p Program) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the versions of the program and of its libraries",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), p.displayName(), buildVersion())
			return err
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

// buildVersion returns the version of the program, with the versions of Go and kopf-runtime, which matter for
// debugging.
func buildVersion() string {
	const module = "github.com/kopf-runtime/kopf-runtime"
	// Only binaries that were built without module support have no build information.
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	parts := []string{info.Main.Version}
	// The module is not among its own dependencies, so its examples show only one version.
	for _, dependency := range info.Deps {
		if dependency.Path == module {
			parts = append(parts, "kopf-runtime "+dependency.Version)
		}
	}
	return strings.Join(append(parts, info.GoVersion), ", ")
}
