package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/kopf-runtime/kopf-runtime/test/controlplane/assets"
	"github.com/kopf-runtime/kopf-runtime/test/controlplane/internal/process"
	"github.com/kopf-runtime/kopf-runtime/test/controlplane/progress"
)

// stopTimeout is how long a command has to end by itself after a signal. At a terminal it got the signal as well, and
// a second one means "at once" to many programs; so nothing is passed on before.
const stopTimeout = 10 * time.Second

func printAssets(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	s, rest, err := parse("controlplane assets",
		`controlplane assets prints the folder that holds etcd, kube-apiserver and kubectl.
`, args, stderr, false)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf("unexpected argument %q; controlplane assets --help", rest[0])
	}
	found, err := assets.Resolve(ctx, s.assetOptions)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, found.Dir)
	return err
}

func start(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	s, rest, err := parse("controlplane start",
		`controlplane start runs etcd and kube-apiserver until Ctrl-C and prints how to reach them.
`, args, stderr, true)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf("unexpected argument %q; controlplane start --help", rest[0])
	}
	found, c, err := s.startServers(ctx)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(stdout, "export KUBECONFIG=%s PATH=%s:$PATH\n", c.Kubeconfig(), found.Dir); err != nil {
		return errors.Join(fmt.Errorf("printing the address of the control plane: %w", err), c.Stop())
	}
	progress.New(stderr).Say("running; Ctrl-C stops it and removes everything it has stored")
	select {
	case <-ctx.Done():
		return c.Stop()
	case <-c.Done():
		return errors.Join(c.Err(), c.Stop())
	}
}

func run(ctx context.Context, args []string, stderr io.Writer) error {
	s, command, err := parse("controlplane run",
		`controlplane run -- command … runs a control plane for as long as the command runs.

The command finds KUBECONFIG and KUBEBUILDER_ASSETS in its environment and kubectl in its PATH. Its
exit code is passed on.
`, args, stderr, true)
	if err != nil {
		return err
	}
	if len(command) == 0 {
		return errors.New("no command; write it behind two dashes: controlplane run -- kubectl get namespaces")
	}
	found, c, err := s.startServers(ctx)
	if err != nil {
		return err
	}
	cmd := exec.Command(command[0], command[1:]...)
	path := found.Dir + string(os.PathListSeparator) + os.Getenv("PATH")
	if found, err := exec.LookPath(found.Path(command[0])); err == nil {
		cmd = exec.Command(found, command[1:]...) // such as kubectl, which the machine need not have
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig(), assets.AssetsVariable+"="+found.Dir, "PATH="+path)
	err = supervise(ctx, cmd, c.Done())
	select {
	case <-c.Done():
		err = errors.Join(c.Err(), err)
	default:
	}
	return errors.Join(err, c.Stop())
}

// supervise runs a command at the caller's terminal until the command ends, the context ends, or a server is lost.
func supervise(ctx context.Context, cmd *exec.Cmd, lost <-chan struct{}) error {
	p, err := process.StartAttached(cmd)
	if err != nil {
		return err
	}
	select {
	case <-p.Done():
	case <-lost:
		p.Stop(stopTimeout)
	case <-ctx.Done():
		select {
		case <-p.Done():
		case <-time.After(stopTimeout):
			p.Stop(stopTimeout)
		}
	}
	exit, ok := errors.AsType[*exec.ExitError](p.Err())
	if !ok {
		return p.Err()
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return codeError(128 + int(status.Signal()))
	}
	return codeError(exit.ExitCode())
}
