package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
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
		"--timeout", s.handlerTimeout().String())
}

// step does one thing to the object, or starts or ends the second operator, and waits for all lines of the operators
// that are to follow.
func (s *Session) step(ctx context.Context, running *operators, act Action) error {
	if act.Verb == "refuse" {
		return s.refused(ctx, act)
	}
	warnings, lines := split(act.Lines)
	awaited, end, err := watch(running, lines) // before the act, so that no line is too early
	if err != nil {
		return err
	}
	defer end()
	if err := s.runAction(ctx, running, act, warnings); err != nil {
		return err
	}
	for _, what := range act.WaitConditions {
		if err := s.kubectl(ctx, s.waiting(what)...); err != nil {
			return err
		}
	}
	return s.follow(ctx, running, act.Verb, awaited, lines)
}

// runAction does what the verb says.
func (s *Session) runAction(ctx context.Context, running *operators, act Action, warnings []string) error {
	switch act.Verb {
	case "second":
		return s.start(&running.second, act.Args...)
	case "stop second":
		s.say("Stopping the second operator")
		s.stop(&running.second)
		return nil
	}
	output, err := s.ask(ctx, s.arguments(act)...)
	if err != nil {
		return err
	}
	if missing, err := unmatched(warnings, output); missing != "" || err != nil {
		return errors.Join(fmt.Errorf("no warning of kubectl matched %q for %q", missing, act.Verb), err)
	}
	s.compareOutput(warnings, output)
	return nil
}

// follow waits until the operators have logged all lines, and shows each line with its expression.
func (s *Session) follow(
	ctx context.Context, running *operators, verb string, awaited []<-chan string, lines []string,
) error {
	defer s.Report.Waiting("waiting for the handler of "+verb, "")()
	timer := time.NewTimer(s.handlerTimeout())
	defer timer.Stop()
	seen := make([]string, len(lines))
	for i := range awaited {
		select {
		case seen[i] = <-awaited[i]:
		case <-timer.C:
			return fmt.Errorf("no handler fired for %q within %s: no line of the operator matched %q",
				verb, s.handlerTimeout(), lines[i])
		case <-running.first.ended():
			return fmt.Errorf("waiting for the handler of %q: %w: %w", verb, ErrOperatorEnded,
				exitError(running.first.process))
		case <-running.second.ended():
			return fmt.Errorf("waiting for the handler of %q: the second one: %w: %w", verb, ErrOperatorEnded,
				exitError(running.second.process))
		case <-ctx.Done():
			return fmt.Errorf("waiting for the handler of %q: %w", verb, context.Cause(ctx))
		}
	}
	for i, line := range lines {
		s.compare(line, seen[i])
	}
	return nil
}

// watch gives a channel for each of the lines.
func watch(running *operators, lines []string) (awaited []<-chan string, end func(), err error) {
	var ends []func()
	for _, line := range lines {
		log := running.first.log
		expression, isSecond := strings.CutPrefix(line, "second: ")
		if isSecond {
			log = running.second.log
		}
		pattern, err := regexp.Compile(expression)
		if err != nil {
			return nil, nil, fmt.Errorf("reading the pattern of the lines to wait for: %w", err)
		}
		seen, end := log.Watch(pattern.MatchString)
		awaited, ends = append(awaited, seen), append(ends, end)
	}
	return awaited, func() {
		for _, end := range ends {
			end()
		}
	}, nil
}

// kubectl runs one command, and shows it with its output.
func (s *Session) kubectl(ctx context.Context, args ...string) error {
	_, err := s.ask(ctx, args...)
	return err
}

// ask is kubectl, and gives the output.
func (s *Session) ask(ctx context.Context, args ...string) (output string, err error) {
	s.show(append([]string{"kubectl"}, args...)...)
	shown := NewTranscript(s.Out, "kubectl  | ")
	defer shown.Flush()
	var all bytes.Buffer
	cmd := exec.Command(s.Kubectl, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig, "KUBECACHEDIR="+filepath.Join(s.Scratch, "kubectl"))
	both := io.MultiWriter(shown, &all)
	cmd.Stdout, cmd.Stderr = both, both
	defer s.Report.Waiting(fmt.Sprintf("waiting for kubectl %s", args[0]), "")()
	if err := process.Run(ctx, cmd); err != nil {
		return all.String(), fmt.Errorf("running kubectl %s for the example: %w", args[0], err)
	}
	return all.String(), nil
}

// invite explains how to continue in a second terminal with the kubectl of the session.
func (s *Session) invite() {
	s.say("Now it is your turn. In a second terminal:\n\n"+
		"    export KUBECONFIG=%s\n"+
		"    alias kubectl=%s\n"+
		"    kubectl edit -f %s\n\n"+
		"Ctrl-C here stops everything.", s.Kubeconfig, s.Kubectl, s.object())
}

// exitError returns how a program has ended, including a success.
func exitError(p *process.Process) error {
	if err := p.Err(); err != nil {
		return err
	}
	return errors.New("exit status 0")
}
