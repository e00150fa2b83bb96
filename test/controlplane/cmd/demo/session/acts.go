package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"

	"github.com/kopf-runtime/kopf-runtime/test/controlplane/internal/process"
)

// install makes the kinds known and waits until the API server serves them.
func (s *Session) install(ctx context.Context) error {
	for _, kinds := range s.Kinds {
		s.say("Installing the kinds of %s", kinds)
		how := "-f"
		if info, err := os.Stat(kinds); err == nil && info.IsDir() {
			how = "-k"
		}
		if err := s.kubectl(ctx, "apply", how, kinds); err != nil {
			return err
		}
	}
	return s.kubectl(ctx, "wait", "customresourcedefinitions", "--all", "--for", "condition=Established",
		"--timeout", s.patience().String())
}

func (s *Session) start(log *Transcript) (*process.Process, error) {
	s.say("Starting the operator of %s", s.Example)
	cmd := exec.Command(s.Operator[0], s.Operator[1:]...) // ends by Stop: it gets time for its handlers
	cmd.Dir = s.Example
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig)
	cmd.Stdout, cmd.Stderr = log, log
	operator, err := process.Start(cmd)
	if err != nil {
		return nil, fmt.Errorf("starting the operator of %s: %w", s.Example, err)
	}
	return operator, nil
}

// step does one thing to the object and waits for the handler of its reason.
func (s *Session) step(ctx context.Context, log *Transcript, operator *process.Process, reason string, args []string) error {
	template := s.Fired
	if template == "" {
		template = Fired
	}
	pattern, err := regexp.Compile(fmt.Sprintf(template, reason))
	if err != nil {
		return fmt.Errorf("reading the pattern of the lines to wait for: %w", err)
	}
	seen, end := log.Watch(pattern.MatchString) // before the act, so that no line is too early
	defer end()
	if err := s.kubectl(ctx, args...); err != nil {
		return err
	}
	defer s.Report.Waiting("waiting for the handler of reason "+reason, "")()
	timer := time.NewTimer(s.patience())
	defer timer.Stop()
	select {
	case <-seen:
		return nil
	case <-timer.C:
		return fmt.Errorf("no handler fired for reason %q within %s: no line of the operator matched %q", reason, s.patience(), pattern)
	case <-operator.Done():
		return fmt.Errorf("waiting for the handler of reason %q: %w: %w", reason, ErrOperatorEnded, ending(operator))
	case <-ctx.Done():
		return fmt.Errorf("waiting for the handler of reason %q: %w", reason, context.Cause(ctx))
	}
}

// kubectl runs one command, shown as the user would type it, and shows its output.
func (s *Session) kubectl(ctx context.Context, args ...string) error {
	shown := NewTranscript(s.Out, "kubectl  | ")
	defer shown.Flush()
	cmd := exec.Command(s.Kubectl, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig, "KUBECACHEDIR="+filepath.Join(s.Scratch, "kubectl"))
	cmd.Stdout, cmd.Stderr = shown, shown
	defer s.Report.Waiting(fmt.Sprintf("waiting for kubectl %s", args[0]), "")()
	if err := process.Run(ctx, cmd); err != nil {
		return fmt.Errorf("running kubectl %s for the example: %w", args[0], err)
	}
	return nil
}

// invite tells what to do in a second terminal, with the kubectl that is there for sure.
func (s *Session) invite() {
	s.say("Now it is your turn. In a second terminal:\n\n"+
		"    export KUBECONFIG=%s\n"+
		"    alias kubectl=%s\n"+
		"    kubectl edit -f %s\n\n"+
		"Ctrl-C here stops everything.", s.Kubeconfig, s.Kubectl, s.object())
}

// ending is how a program ended, where ending with success is told as well.
func ending(p *process.Process) error {
	if err := p.Err(); err != nil {
		return err
	}
	return errors.New("exit status 0")
}
