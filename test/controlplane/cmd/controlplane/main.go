// Command controlplane provides a Kubernetes control plane, or only its programs, on a machine that has Go.
//
// Results go to standard output, everything else to standard error. It never needs root, a container runtime or a
// cluster. Its neighbours are the packages assets and controlplane, which do the work.
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
)

const usage = `controlplane provides etcd, kube-apiserver and kubectl, and runs them.

  controlplane assets              print the folder that holds the three programs, getting them first if need be
  controlplane start               run a control plane until Ctrl-C
  controlplane run -- command …    run a control plane for as long as the command runs

Each has flags: controlplane assets --help.

Where the programs come from, in this order:
  1. the folder that KUBEBUILDER_ASSETS names
  2. the cache: $KOPF_RUNTIME_CACHE, or kopf-runtime in the user's cache folder
  3. setup-envtest's download
  4. a build from the Go module proxy: about 7 minutes on two cores, once

Examples:
  KUBEBUILDER_ASSETS=$(controlplane assets) go test ./...
  controlplane run -- kubectl get namespaces
  controlplane start --audit-log=audit.jsonl
`

// codeError ends the program with a code of its own and no message.
type codeError int

func (e codeError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func main() {
	// A hang-up, as from a closed terminal, is a wish to end as well.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := dispatch(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	var code codeError
	switch {
	case errors.As(err, &code):
		os.Exit(int(code))
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}

func dispatch(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		_, _ = fmt.Fprint(stderr, usage)
		return codeError(2)
	}
	switch args[0] {
	case "assets":
		return printAssets(ctx, args[1:], stdout, stderr)
	case "start":
		return start(ctx, args[1:], stdout, stderr)
	case "run":
		return run(ctx, args[1:], stderr)
	case "help", "--help", "-help", "-h":
		_, err := fmt.Fprint(stdout, usage)
		return err
	}
	return fmt.Errorf("unknown command %q; controlplane --help lists them", args[0])
}
