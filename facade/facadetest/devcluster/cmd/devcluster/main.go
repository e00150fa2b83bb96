// Command devcluster serves a development cluster on this machine, until Ctrl-C or until the program that it started
// ends.
//
//	devcluster [flags] [-- program arguments...]
//
// Without a program it prints how to use the cluster. With a program, it starts the program with the environment
// variable KUBECONFIG set, and ends with its exit code. See "devcluster --help".
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
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

// killDelay is how long the program may take to end after a signal.
const killDelay = 15 * time.Second

func main() {
	code, err := run(os.Args[1:], os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "devcluster:", err)
	}
	os.Exit(code)
}

// parse reads the command line.
func parse(arguments []string, stderr io.Writer) (o devcluster.Options, program []string, err error) {
	flags := flag.NewFlagSet("devcluster", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.Address, "address", "127.0.0.1:0", "loopback `address` to listen on; port 0 picks a free one")
	flags.StringVar(
		&o.Kubeconfig, "kubeconfig", "", "`file` to write the kubeconfig to (default: a temporary file)",
	)
	flags.BoolVar(&o.PretendReady, "pretend-ready", false,
		"report Deployments, StatefulSets, DaemonSets, ReplicaSets, Jobs, Pods and claims as ready after a moment")
	flags.Func("load", "`file` or folder with objects to begin with, as \"kubectl get -o yaml\" prints them; "+
		"may be repeated", func(path string) error {
		o.Load = append(o.Load, path)
		return nil
	})
	flags.StringVar(&o.Save, "save", "", "`file` to write all objects to at the end")
	flags.BoolVar(
		&o.WithSecrets, "with-secrets", false, "save the values of Secrets instead of their digests",
	)
	verbose := flags.Bool("verbose", false, "log every request")
	flags.Usage = func() {
		_, _ = fmt.Fprint(flags.Output(), introduction)
		flags.PrintDefaults()
	}
	if err := flags.Parse(arguments); err != nil {
		return o, nil, err
	}
	o.Log = logger(stderr, *verbose)
	return o, flags.Args(), nil
}

func logger(to io.Writer, verbose bool) logr.Logger {
	options := funcr.Options{LogTimestamp: true}
	if verbose {
		options.Verbosity = 1
	}
	return funcr.New(func(_, line string) { _, _ = fmt.Fprintln(to, "devcluster:", line) }, options)
}

func run(arguments []string, stdout, stderr io.Writer) (code int, err error) {
	options, program, err := parse(arguments, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0, nil
	case err != nil:
		return 2, nil // the flags have been explained
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The cluster outlives the program, which may remove its objects at the end.
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	begun := time.Now()
	cluster, err := devcluster.Start(serving, options)
	if err != nil {
		return 1, err
	}
	_, _ = fmt.Fprintf(stderr, "devcluster: serving at %s after %s\n", cluster.Config().Host,
		time.Since(begun).Round(time.Millisecond))
	failed := make(chan error, 1)
	go func() { failed <- cluster.Wait(); stop() }()
	if len(program) > 0 {
		suggest(stderr, cluster)
		_, _ = fmt.Fprintf(stderr, "devcluster: starting %s with KUBECONFIG=%s\n", program[0], cluster.Kubeconfig())
		code, err = start(ctx, program, cluster.Kubeconfig(), stdout, stderr)
	} else {
		_, _ = fmt.Fprintf(stdout, nextSteps, cluster.Kubeconfig())
		<-ctx.Done()
	}
	end()
	return code, errors.Join(err, <-failed)
}

const nextSteps = `The development cluster is ready. In another terminal:

  export KUBECONFIG=%s
  kubectl get namespaces                 # what is there
  kubectl apply -f crd.yaml              # a kind of your own
  go run .                               # your operator

Ctrl-C ends it.
`

// suggest prints commands to try while the program runs, with what each shows.
func suggest(to io.Writer, cluster *devcluster.Cluster) {
	loaded := cluster.Loaded()
	if len(loaded) == 0 {
		return
	}
	last := loaded[len(loaded)-1]
	kind := last.GroupVersionKind()
	name := strings.ToLower(kind.Kind)
	if kind.Group != "" {
		name += "." + kind.Group
	}
	name += "/" + last.GetName()
	if namespace := last.GetNamespace(); namespace != "" && namespace != "default" {
		name += " -n " + namespace
	}
	_, _ = fmt.Fprintf(to, suggestions, cluster.Kubeconfig(), name, name, name)
}

const suggestions = `devcluster: to try, in another terminal:
  export KUBECONFIG=%s
  kubectl get %s -o yaml          # the object, with what the operator has written
  kubectl label %s changed-by=me  # a change, for the operator to handle
  kubectl delete %s               # the end of the object
`

// start runs the program until it ends; a signal is passed on to it.
func start(ctx context.Context, program []string, kubeconfig string, stdout, stderr io.Writer) (int, error) {
	cmd := exec.CommandContext(ctx, program[0], program[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, stdout, stderr
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	// Ctrl-C reaches the program by itself, as it is in the same process group; SIGTERM does not.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = killDelay
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && ctx.Err() != nil:
		return 0, nil // it was asked to end
	case errors.As(err, &exit):
		return max(1, exit.ExitCode()), nil
	case ctx.Err() != nil:
		return 0, nil
	case err != nil:
		return 1, fmt.Errorf("starting %s: %w", program[0], err)
	default:
		return 0, nil
	}
}
