package session

import (
	"fmt"
	"os"
	"os/exec"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/test/controlplane/internal/process"
)

// operator is one of the two operators of a session: its log, and its process while it runs.
type operator struct {
	log     *Transcript
	process *process.Process
}

// operators are those of one session. The logs of both exist from the start, so that their first lines can be watched.
type operators struct{ first, second operator }

func (s *Session) newOperators() *operators {
	return &operators{
		first:  operator{log: NewTranscript(s.Out, "operator | ")},
		second: operator{log: NewTranscript(s.Out, "second   | ")},
	}
}

// start runs the program of the example with its own arguments and these.
func (s *Session) start(o *operator, args ...string) (err error) {
	args = append(slices.Clone(s.Operator[1:]), args...)
	s.show(append([]string{"go", "-C", s.Example, "run", "."}, args...)...)
	cmd := exec.Command(s.Operator[0], args...) // ends by stop: it gets time for its handlers
	cmd.Dir = s.Example
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig)
	cmd.Stdout, cmd.Stderr = o.log, o.log
	o.process, err = process.Start(cmd)
	if err != nil {
		return fmt.Errorf("starting the operator of %s: %w", s.Example, err)
	}
	return nil
}

// stop ends the operator, if it runs, and shows the rest of its log.
func (s *Session) stop(o *operator) {
	if o.process == nil {
		return
	}
	done := s.Report.Waiting("waiting for the operator to end", "")
	o.process.Stop(stopTimeout)
	done()
	o.log.Flush()
	o.process = nil
}

// ended is closed when the operator has ended by itself. It is nil for one that does not run.
func (o *operator) ended() <-chan struct{} {
	if o.process == nil {
		return nil
	}
	return o.process.Done()
}
