package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// stopTimeout is how long a program may take to end after a signal.
const stopTimeout = 30 * time.Second

// Process is a program that is running or has ended.
type Process struct {
	command   *exec.Cmd
	reader    *figureReader
	log       *os.File
	startedAt time.Time
	done      chan struct{}
	err       error // the reason for the end; read only after done is closed
}

// Start starts a program with additional environment variables. Its output is appended to a file.
func Start(args, variables []string, log string) (*Process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", args[0], err)
	}
	p := &Process{
		command: exec.Command(args[0], args[1:]...), //nolint:gosec // the contenders are given by name
		reader:  newFigureReader(), log: file, done: make(chan struct{}),
	}
	p.command.Env = append(os.Environ(), variables...)
	p.command.Stdout, p.command.Stderr = io.MultiWriter(file, p.reader), file
	p.startedAt = time.Now()
	if err := p.command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", args[0], err), file.Close())
	}
	go p.wait()
	return p, nil
}

func (p *Process) wait() {
	err := p.command.Wait()
	p.err = errors.Join(fmt.Errorf("%s has ended: %w", strings.Join(p.command.Args, " "), exitError(err)),
		p.log.Close())
	close(p.done)
}

func exitError(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// StartedAt returns the start time.
func (p *Process) StartedAt() time.Time { return p.startedAt }

// Done returns a channel that is closed when the program has ended; [Process.Err] returns the reason.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns the reason for the end and the last lines of the log, or nil while the program runs.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return fmt.Errorf("%w; the end of its log:\n%s", p.err, tail(p.log.Name()))
	default:
		return nil
	}
}

// Usage returns the present usage of the program. If it has ended by itself, the error is that of [Process.Err].
func (p *Process) Usage() (Usage, error) {
	usage, err := Measure(p.command.Process.Pid)
	if err == nil {
		return usage, nil
	}
	select {
	case <-p.done:
		return usage, p.Err()
	case <-time.After(time.Second): // it is running and cannot be measured
		return usage, err
	}
}

// Await waits until the program has printed a number of lines with a word, and returns all of them.
func (p *Process) Await(ctx context.Context, word string, times int) ([]FigureLine, error) {
	return p.reader.await(ctx, word, times)
}

// Signal sends a signal to the program.
func (p *Process) Signal(s os.Signal) error {
	if err := p.command.Process.Signal(s); err != nil {
		return errors.Join(fmt.Errorf("sending %s: %w", s, err), p.Err())
	}
	return nil
}

// Stop ends the program and waits for the end: first by SIGTERM, then by SIGKILL.
func (p *Process) Stop() {
	// The signal fails if the program has already ended, which is fine.
	_ = p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
		_ = p.command.Process.Kill()
		<-p.done
	}
}

// tail returns the end of a file, or the error of reading it.
func tail(path string) string {
	const most = 4000
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-most):])
}
