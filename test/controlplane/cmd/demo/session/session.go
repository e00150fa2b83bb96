package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"time"

	"github.com/kopf-runtime/kopf-runtime/test/controlplane/progress"
)

// DefaultFiredPattern is the default of [Session.FiredPattern]: the framework's own line about a handler that
// succeeded, however the logger writes its values.
const DefaultFiredPattern = `Handler succeeded.*\breason\W+%s\b`

// stopTimeout is the time in which the operator must end its handlers before it is killed.
const stopTimeout = 20 * time.Second

// consoleURL matches the line of an operator that serves its console.
var consoleURL = regexp.MustCompile(`Serving the console.*?(http://[^\s"]+/console)`)

// ErrOperatorEnded is the error of an operator that ended before it was asked to.
var ErrOperatorEnded = errors.New("the operator has ended by itself")

// Session describes how one example is played. All fields are required unless documented otherwise.
type Session struct {
	// Kubectl is the path of the kubectl to use, Kubeconfig that of its configuration.
	Kubectl, Kubeconfig string
	// Scratch is a folder for temporary files.
	Scratch string
	// Kinds are the definitions that the example needs: files, or folders with a kustomization.
	Kinds []string
	// Operator is the command line of the operator; it is run in Example.
	Operator []string
	// Example is the folder of the example; its object is in object.yaml there.
	Example string
	// Actions are the actions of the demonstration. By default it creates the object, changes it by Change, and deletes
	// it, where each has a handler that fires.
	Actions []Action
	// Change is the merge patch that the demonstration changes the object with, unless there are Acts.
	Change string
	// FiredPattern is a regular expression for the log line of a successful handler, with %s in the place of the reason
	// ("create", "update", "delete"). Empty means the constant [DefaultFiredPattern].
	FiredPattern string
	// HandlerTimeout is how long a handler may take to fire. Zero means a minute.
	HandlerTimeout time.Duration
	// Out is where everything is shown; it is written to in whole lines, by several goroutines at once.
	Out io.Writer
	// Report prints waits. Nil prints nothing.
	Report *progress.Reporter
}

// Run applies the object, after what the acts apply before it, and shows the example, with the URL of the operator's
// console if it has one, until ctx ends, which is no error, or the operator ends by itself, which is
// [ErrOperatorEnded].
func (s *Session) Run(ctx context.Context) error {
	running := s.newOperators()
	served, end := running.first.log.Watch(consoleURL.MatchString) // before the operator starts: no line is too early
	defer end()
	return s.play(ctx, running, func(ctx context.Context) error {
		for _, act := range append(s.setupActions(), Action{Verb: "create"}) {
			if err := s.kubectl(ctx, s.arguments(act)...); err != nil {
				return err
			}
		}
		s.invite()
		for {
			select {
			case line := <-served:
				s.say("In a browser: %s", consoleURL.FindStringSubmatch(line)[1])
			case <-running.first.ended():
				return fmt.Errorf("%w: %w", ErrOperatorEnded, exitError(running.first.process))
			case <-ctx.Done():
				return nil
			}
		}
	})
}

// Demonstrate plays the example through: its object is applied, changed and deleted, and each time the operator has to
// log the expected lines. Demonstrate shows each command before it runs, and then the expected and the seen lines. The
// first missing line is the error.
func (s *Session) Demonstrate(ctx context.Context) error {
	running := s.newOperators()
	return s.play(ctx, running, func(ctx context.Context) error {
		for _, act := range s.resolveActions() {
			if err := s.step(ctx, running, act); err != nil {
				return err
			}
		}
		s.say("Every handler has fired, and the object is gone.")
		return nil
	})
}

// play does what comes before and after the acts.
func (s *Session) play(ctx context.Context, running *operators, acts func(context.Context) error) error {
	if err := s.install(ctx); err != nil {
		return err
	}
	s.say("Starting the operator of %s", s.Example)
	if err := s.start(&running.first); err != nil {
		return err
	}
	defer s.stop(&running.first)
	defer s.stop(&running.second)
	return acts(ctx)
}

func (s *Session) say(format string, args ...any) {
	_, _ = fmt.Fprintf(s.Out, "\n"+format+"\n", args...)
}

func (s *Session) object() string { return filepath.Join(s.Example, "object.yaml") }

func (s *Session) handlerTimeout() time.Duration {
	if s.HandlerTimeout == 0 {
		return time.Minute
	}
	return s.HandlerTimeout
}
