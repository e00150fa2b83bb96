// Command controlplane runs etcd and kube-apiserver of KUBEBUILDER_ASSETS for as long as a command runs, or until
// Ctrl-C.
//
// It is what envtest does for tests, for a terminal. It never uses another cluster, the user's kubeconfig, or a port
// beyond 127.0.0.1. Its neighbour assets gets the programs.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const usage = `controlplane [flags] [command …] runs etcd and kube-apiserver while the command runs, or until Ctrl-C.

The command gets KUBECONFIG, and the programs in its PATH. Its exit code is passed on. Examples:
  export KUBEBUILDER_ASSETS=$(go run ./test/controlplane/assets)
  go run ./test/controlplane kubectl get namespaces
  go run ./test/controlplane --audit-log audit.jsonl

Flags:
`

// auditPolicy logs the bodies of all requests except those of kube-apiserver itself.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - {level: None, users: [system:apiserver]}
  - {level: None, nonResourceURLs: ["/healthz*", "/livez*", "/readyz*"]}
  - {level: RequestResponse}
`

func main() {
	flags := flag.NewFlagSet("controlplane", flag.ExitOnError)
	flags.Usage = func() {
		_, _ = fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	gates := flags.String("feature-gates", "", "`gates` of kube-apiserver to set, such as ShardedListAndWatch=true; "+
		"separate several by commas")
	audit := flags.String("audit-log", "", "append one JSON line per answered request to this `file`")
	_ = flags.Parse(os.Args[1:]) // it exits
	code, err := run(flags.Args(), *gates, *audit, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// run returns the exit code of the command.
func run(command []string, gates, audit string, stdout io.Writer) (code int, err error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	folder, err := os.MkdirTemp("", "controlplane-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	environment := &envtest.Environment{
		ControlPlaneStartTimeout: 2 * time.Minute, ControlPlaneStopTimeout: time.Minute,
	}
	if err := configure(environment.ControlPlane.GetAPIServer(), folder, gates, audit); err != nil {
		return 0, err
	}
	if _, err := environment.Start(); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, environment.Stop()) }()
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err := os.WriteFile(kubeconfig, environment.KubeConfig, 0o600); err != nil {
		return 0, err
	}
	programs := os.Getenv("KUBEBUILDER_ASSETS")
	if len(command) == 0 {
		_, _ = fmt.Fprintf(stdout, "export KUBECONFIG=%s PATH=%s:$PATH\n", kubeconfig, programs)
		<-signals
		return 0, nil
	}
	if err := errors.Join(os.Setenv("KUBECONFIG", kubeconfig),
		os.Setenv("PATH", programs+string(os.PathListSeparator)+os.Getenv("PATH"))); err != nil {
		return 0, err
	}
	select {
	case <-signals: // during the start
		return shellCode(syscall.WaitStatus(syscall.SIGINT)), nil
	default:
		return runCommand(command, signals)
	}
}

func configure(server *envtest.APIServer, folder, gates, audit string) error {
	if gates != "" {
		server.Configure().Set("feature-gates", gates)
	}
	if audit == "" {
		return nil
	}
	audit, err := filepath.Abs(audit)
	if err != nil {
		return err
	}
	policy := filepath.Join(folder, "audit-policy.yaml")
	server.Configure().Set("audit-policy-file", policy).Set("audit-log-path", audit)
	return os.WriteFile(policy, []byte(auditPolicy), 0o600)
}

// runCommand runs a command at the terminal. With Ctrl-C, the terminal has signalled the command already.
func runCommand(command []string, signals <-chan os.Signal) (code int, err error) {
	cmd := exec.Command(command[0], command[1:]...) //nolint:gosec,noctx // the user's command; signals end it
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case received := <-signals:
			if received != os.Interrupt {
				_ = cmd.Process.Signal(received) // it may have ended
			}
		case err := <-ended:
			if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
				status, _ := exit.Sys().(syscall.WaitStatus)
				return shellCode(status), nil
			}
			return 0, err
		}
	}
}

// shellCode returns the exit code that a shell has for a status.
func shellCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
