// Command devcluster serves a development cluster on this machine, until Ctrl-C or until the program that it has
// started ends.
//
//	devcluster [flags] [-- program arguments...]
//
// Without a program, it prints instructions for using the cluster. With a program, it starts the program with
// KUBECONFIG set in its environment, and exits with the program's exit code. See "devcluster --help".
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/devcluster"
)

const introduction = `devcluster serves a Kubernetes API server in memory on this machine, for developing operators.

Usage:
  devcluster [flags]                           serve until Ctrl-C
  devcluster [flags] -- program [arguments]    serve while the program runs, with its KUBECONFIG set

Examples:
  devcluster --kubeconfig dev.kubeconfig       then, elsewhere: KUBECONFIG=dev.kubeconfig kubectl get namespaces
  devcluster -- go run .                       run the operator in this folder
  devcluster --pretend-ready -- go run .       the same, with Deployments that become ready
  devcluster --load dump.yaml --save dump.yaml keep the objects from one time to the next

It stores and validates objects, and runs garbage collection, namespaces and webhooks. Nothing else runs: no
containers, no scheduler, no controllers. RBAC is off. It answers requests of this machine alone, with the token of the
kubeconfig file.

Flags:
`

var errNoProgram = errors.New("--demo and --current-context need a program: devcluster [flags] -- program [arguments]")

// command is one invocation of devcluster.
type command struct {
	devcluster.Options
	program []string
	// showsDemonstration prints commands for trying out the program: see demonstration.
	showsDemonstration bool
	// usesCurrentContext selects the cluster of the user's kubeconfig.
	usesCurrentContext bool
	// consoleTimeout limits the wait for the program's console.
	consoleTimeout time.Duration

	stdin          io.Reader
	isTerminal     bool // whether stdin is a terminal
	stdout, stderr io.Writer
}

func main() {
	// A character device is a terminal or /dev/null; reading from the latter counts as no.
	info, err := os.Stdin.Stat()
	c := command{
		consoleTimeout: consoleTimeout, stdin: os.Stdin, isTerminal: err == nil && info.Mode()&os.ModeCharDevice != 0,
		stdout: os.Stdout, stderr: os.Stderr,
	}
	code, err := c.runCommand(os.Args[1:])
	if err != nil {
		c.printMessage("%v", err)
	}
	os.Exit(code)
}

// printMessage prints a message to stderr.
func (c *command) printMessage(format string, arguments ...any) {
	_, _ = fmt.Fprintf(c.stderr, "devcluster: "+format+"\n", arguments...)
}

// parseArguments parses the command line.
func (c *command) parseArguments(arguments []string) error {
	flags := flag.NewFlagSet("devcluster", flag.ContinueOnError)
	flags.SetOutput(c.stderr)
	flags.StringVar(&c.Address, "address", "127.0.0.1:0", "loopback `address` to listen on; port 0 picks a free one")
	flags.StringVar(
		&c.Kubeconfig, "kubeconfig", "", "`file` to write the kubeconfig to (default: a temporary file)",
	)
	flags.BoolVar(&c.PretendReady, "pretend-ready", false,
		"report Deployments, StatefulSets, DaemonSets, ReplicaSets, Jobs, Pods and claims as ready after a moment")
	flags.Func("load", "`file` or folder with objects to begin with, as \"kubectl get -o yaml\" prints them; "+
		"may be repeated", func(path string) error {
		c.Load = append(c.Load, path)
		return nil
	})
	flags.StringVar(&c.Save, "save", "", "`file` to write all objects to at the end")
	flags.BoolVar(
		&c.WithSecrets, "with-secrets", false, "save the values of Secrets instead of their digests",
	)
	flags.StringVar(
		&c.Record, "record", "", "`file` to write all requests to, as an audit log, for \"manifests --from-recording\"",
	)
	flags.BoolVar(&c.IgnoreShardSelector, "ignore-shard-selector", false,
		"send all objects to clients that ask for a part of them, like a cluster without the gate ShardedListAndWatch")
	flags.BoolVar(&c.showsDemonstration, "demo", false,
		"run the program, an operator, with its console, and print commands to try "+
			"with the object loaded last; without kubectl in PATH, change this object")
	flags.BoolVar(&c.usesCurrentContext, "current-context", false,
		"after a question, use the cluster of the current context of "+
			"your kubeconfig instead: apply what --load names to it by kubectl, and run the program")
	verbose := flags.Bool("verbose", false, "log every request")
	flags.Usage = func() {
		_, _ = fmt.Fprint(flags.Output(), introduction)
		flags.PrintDefaults()
	}
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	// Everything after the flags is the program.
	c.program, c.Log = flags.Args(), newLogger(c.stderr, *verbose)
	if len(c.program) == 0 && (c.showsDemonstration || c.usesCurrentContext) {
		return errNoProgram
	}
	return nil
}

// newLogger returns a logger that writes lines to a writer.
func newLogger(to io.Writer, verbose bool) logr.Logger {
	options := funcr.Options{LogTimestamp: true}
	if verbose {
		options.Verbosity = 1
	}
	return funcr.New(func(_, line string) { _, _ = fmt.Fprintln(to, "devcluster:", line) }, options)
}

// runCommand executes the command line, and returns the exit code. Code 2 is for wrong arguments, as in the flag
// package.
func (c *command) runCommand(arguments []string) (code int, err error) {
	switch err := c.parseArguments(arguments); {
	case errors.Is(err, flag.ErrHelp):
		return 0, nil
	case errors.Is(err, errNoProgram):
		return 2, err
	case err != nil:
		return 2, nil // the flag package has printed the error
	}
	// Both signals end the command in an orderly way; the objects are then saved.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if c.usesCurrentContext {
		return c.runCurrent(ctx)
	}
	// The cluster outlives the program, because the program may write or delete objects while it shuts down.
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	begun := time.Now()
	cluster, err := devcluster.Start(serving, c.Options)
	if err != nil {
		return 1, err
	}
	c.printMessage("serving at %s after %s", cluster.Config().Host, time.Since(begun).Round(time.Millisecond))
	failed := make(chan error, 1)
	// If serving fails, the program is stopped, too.
	go func() { failed <- cluster.Wait(); stop() }()
	if len(c.program) > 0 {
		code, err = c.runProgram(ctx, cluster)
	} else {
		_, _ = fmt.Fprintf(c.stdout, nextSteps, cluster.Kubeconfig())
		<-ctx.Done()
	}
	// The cluster saves its objects after the program has ended.
	end()
	if err = errors.Join(err, <-failed); err != nil {
		code = max(code, 1)
	}
	return code, err
}

const nextSteps = `The development cluster is ready. In another terminal:

  export KUBECONFIG=%s
  kubectl get namespaces                 # what is there
  kubectl apply -f crd.yaml              # a kind of your own
  go run .                               # your operator

Ctrl-C ends it.
`

// runProgram runs the program on the development cluster, with the object loaded last for the demonstration.
func (c *command) runProgram(ctx context.Context, cluster *devcluster.Cluster) (int, error) {
	c.printMessage("starting %s with KUBECONFIG=%s", c.program[0], cluster.Kubeconfig())
	d := demonstration{out: c.stderr, kubeconfig: cluster.Kubeconfig(), config: cluster.Config()}
	// Without a demonstration, the object is not needed.
	if loaded := cluster.Loaded(); len(loaded) > 0 && c.showsDemonstration {
		var err error
		if d.object, err = readObject(ctx, d.config, loaded[len(loaded)-1]); err != nil {
			return 1, fmt.Errorf("reading the loaded object: %w", err)
		}
		d.kubectlArguments = argumentsFor(d.object)
	}
	return c.startProgram(ctx, d)
}
