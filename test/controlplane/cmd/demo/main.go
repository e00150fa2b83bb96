// Command demo shows an example at work on a control plane of its own.
//
//	demo [-root .] [-example examples/01-minimal] [-once] [-- operator arguments]
//
// It builds the example's operator, starts etcd and kube-apiserver, installs the kinds of config/crd, runs the
// operator, applies the example's object.yaml, and shows what the operator says and the URL of its console until
// Ctrl-C. With -once it changes and deletes the object as well, as the example's expected.txt says, prints each
// command with the expected and the seen lines, and fails if a handler did not fire. Everything it starts ends with it.
// An example with kinds of its own has them in crd.yaml.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/kopf-runtime/kopf-runtime/test/controlplane"
	"github.com/kopf-runtime/kopf-runtime/test/controlplane/assets"
	"github.com/kopf-runtime/kopf-runtime/test/controlplane/cmd/demo/session"
	"github.com/kopf-runtime/kopf-runtime/test/controlplane/internal/process"
	"github.com/kopf-runtime/kopf-runtime/test/controlplane/progress"
)

// change works for every kind: where the schema has no such field, the label is what changes.
const change = `{"metadata":{"labels":{"changed-by":"demo"}},"spec":{"field":"changed"}}`

// demo is what the command line asks for.
type demo struct {
	root, example        string
	once                 bool
	change, firedPattern string
	handlerTimeout       time.Duration
	operatorArgs         []string
}

func main() {
	var d demo
	flag.StringVar(&d.root, "root", ".", "folder of the repository")
	flag.StringVar(&d.example, "example", "examples/01-minimal", "folder of the example, relative to the root")
	flag.BoolVar(
		&d.once, "once", false, "change and delete the object as well, and end; fail if a handler did not fire",
	)
	flag.StringVar(
		&d.change, "change", change,
		"merge patch that changes the object, with -once, unless the example has an expected.txt",
	)
	flag.StringVar(
		&d.firedPattern, "fired", session.DefaultFiredPattern,
		"regular expression for the line of a handler that fired; %s is the reason",
	)
	flag.DurationVar(&d.handlerTimeout, "patience", time.Minute, "how long a handler may take to fire, with -once")
	flag.Parse()
	d.operatorArgs = operatorArgs(flag.Args(), d.once)

	// A hang-up, as from a closed terminal, is a wish to end as well.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := d.show(ctx)
	interrupted := ctx.Err() != nil
	stop()
	if err != nil && (d.once || !interrupted) {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// operatorArgs are those of the operator. A person who looks on gets the console, at a port that is free.
func operatorArgs(given []string, once bool) []string {
	switch {
	case len(given) > 0:
		return given
	case once:
		return []string{"run", "--all-namespaces"}
	default:
		return []string{"run", "--all-namespaces", "--console", "--debug-bind-address", "localhost:0"}
	}
}

// show makes everything ready, plays the example, and takes everything away again.
func (d *demo) show(ctx context.Context) (err error) {
	root, err := filepath.Abs(d.root)
	if err != nil {
		return fmt.Errorf("finding the repository: %w", err)
	}
	example := filepath.Join(root, d.example)
	if object := filepath.Join(example, "object.yaml"); !exists(object) {
		return fmt.Errorf("there is no %s: an example is a folder with a program and its object.yaml", object)
	}
	acts, err := session.Script(example)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "kopf-runtime-demo-")
	if err != nil {
		return fmt.Errorf("making a folder for the operator: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	report := progress.New(os.Stderr)

	operator, err := d.build(ctx, root, scratch, report)
	if err != nil {
		return err
	}
	found, err := assets.Resolve(ctx, assets.Options{Progress: os.Stderr})
	if err != nil {
		return err
	}
	plane, err := controlplane.Start(ctx, found, controlplane.Options{Progress: os.Stderr})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()

	s := &session.Session{
		Kubectl: found.Path("kubectl"), Kubeconfig: plane.Kubeconfig(), Scratch: scratch,
		Kinds: kinds(root, example), Example: example,
		Operator: append([]string{operator}, d.operatorArgs...),
		Actions:  acts, Change: d.change, FiredPattern: d.firedPattern, HandlerTimeout: d.handlerTimeout,
		Out: os.Stdout, Report: report,
	}
	return d.play(ctx, plane, s)
}

// play ends early when the control plane does.
func (d *demo) play(ctx context.Context, plane *controlplane.ControlPlane, s *session.Session) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-plane.Done():
			cancel(plane.Err())
		case <-ctx.Done():
		}
	}()
	act := s.Run
	if d.once {
		act = s.Demonstrate
	}
	if err := act(ctx); err != nil {
		return err
	}
	select {
	case <-plane.Done():
		return plane.Err()
	default:
		return nil
	}
}

// kinds are the definitions for all examples, and those of this one.
func kinds(root, example string) []string {
	all := []string{filepath.Join(root, "config", "crd")}
	if own := filepath.Join(example, "crd.yaml"); exists(own) {
		all = append(all, own)
	}
	return all
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// build compiles the example's operator and returns its path.
func (d *demo) build(ctx context.Context, root, scratch string, report *progress.Reporter) (string, error) {
	defer report.Waiting("building "+d.example, "a minute or two the first time")()
	operator := filepath.Join(scratch, filepath.Base(d.example))
	cmd := exec.Command("go", "build", "-o", operator, ".")
	cmd.Dir = filepath.Join(root, d.example) // which may be of another module
	absolute, err := filepath.Abs(cmd.Dir)
	if err != nil {
		return "", fmt.Errorf("finding the folder of %s: %w", d.example, err)
	}
	cmd.Env = append(os.Environ(), "GOWORK="+workspaceOf(absolute))
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := process.Run(ctx, cmd); err != nil {
		return "", fmt.Errorf("building the operator of %s: %w", d.example, err)
	}
	return operator, nil
}

// workspaceOf returns the go.work beside the go.mod of a folder with an absolute path: released modules do not have a
// replace. Without one, workspaces around the repository do not apply.
func workspaceOf(folder string) string {
	for dir := folder; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err != nil {
			break
		}
		return filepath.Join(dir, "go.work")
	}
	return "off"
}
