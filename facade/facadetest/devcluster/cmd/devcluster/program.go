package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// killDelay is how long the program may take to end after a signal.
	killDelay = 15 * time.Second
	// groupInterval is how often the end of the program's own children is looked for.
	groupInterval = 20 * time.Millisecond
)

// start runs the program until it ends, or for some time after ctx does.
func (c *command) start(ctx context.Context, d demonstration) (int, error) {
	if c.demo {
		d.patience = c.consolePatience
		more, err := d.withConsole()
		if err != nil {
			return 1, err
		}
		c.program = append(c.program, more...)
	}
	cmd := exec.Command(c.program[0], c.program[1:]...) // ends by signals, not with ctx
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.stdin, c.stdout, c.stderr
	cmd.Env = os.Environ()
	if d.kubeconfig != "" {
		cmd.Env = append(cmd.Env, "KUBECONFIG="+d.kubeconfig)
	}
	// In a process group of its own, the program gets each signal once: from the terminal, whose foreground group it
	// becomes, or from this process. The group also has the programs that it starts, as "go run" does.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Foreground: c.isForeground()}
	if err := cmd.Start(); err != nil {
		return 1, fmt.Errorf("starting %s: %w", c.program[0], err)
	}
	showing, hide := context.WithCancel(ctx)
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		if c.demo {
			d.show(showing)
		}
	}()
	defer func() { hide(); <-shown }()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return exitCode(cmd, err)
	case <-ctx.Done():
		return endGroup(cmd, ended)
	}
}

// isForeground reports whether this process may use the terminal that is its standard input.
func (c *command) isForeground() bool {
	file, ok := c.stdin.(*os.File)
	if !ok {
		return false
	}
	group, err := unix.IoctlGetInt(int(file.Fd()), unix.TIOCGPGRP) // fails without a terminal
	return err == nil && group == unix.Getpgrp()
}

// endGroup forwards a signal to the program and to those that it has started, once, and waits until all have ended.
// After killDelay, they are killed.
func endGroup(cmd *exec.Cmd, ended <-chan error) (int, error) {
	group := -cmd.Process.Pid
	// "go run" would end at SIGTERM without its program; it leaves SIGINT to it.
	_ = syscall.Kill(group, syscall.SIGINT) // fails if they have just ended
	var err error
	deadline, ticks := time.After(killDelay), time.NewTicker(groupInterval)
	defer ticks.Stop()
	for hasEnded := false; !hasEnded || syscall.Kill(group, 0) == nil; {
		select {
		case err = <-ended:
			hasEnded, ended = true, nil
		case <-ticks.C:
		case <-deadline:
			_ = syscall.Kill(group, syscall.SIGKILL)
			if !hasEnded {
				err = <-ended
			}
			return exitCode(cmd, err)
		}
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signal() == syscall.SIGINT {
		return 0, nil // as it was asked to
	}
	return exitCode(cmd, err)
}

// exitCode is that of the program; a program that a signal has ended does not have one.
func exitCode(cmd *exec.Cmd, err error) (int, error) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode(), nil
	default:
		return 1, fmt.Errorf("running %s: %w", cmd.Path, err)
	}
}
