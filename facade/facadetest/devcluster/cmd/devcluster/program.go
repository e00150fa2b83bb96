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
	// killDelay is the time that the program gets to end after a signal.
	killDelay = 15 * time.Second
	// groupInterval is the interval for checking whether the program's own children have ended.
	groupInterval = 20 * time.Millisecond
)

// startProgram runs the program until it ends. When ctx ends, it stops the program.
func (c *command) startProgram(ctx context.Context, d demonstration) (int, error) {
	// The flags of the console are appended to the program's own arguments.
	if c.showsDemonstration {
		d.consoleTimeout = c.consoleTimeout
		more, err := d.withConsole()
		if err != nil {
			return 1, err
		}
		c.program = append(c.program, more...)
	}
	cmd := exec.Command(c.program[0], c.program[1:]...) // it is ended by signals, not by ctx
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.stdin, c.stdout, c.stderr
	cmd.Env = os.Environ()
	if d.kubeconfig != "" {
		cmd.Env = append(cmd.Env, "KUBECONFIG="+d.kubeconfig)
	}
	// The program runs in a process group of its own, so that it receives each signal once: from the terminal, if the
	// group becomes its foreground group, or else from this process. Programs that it starts belong to the group as
	// well, such as the one that "go run" builds.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Foreground: c.isForeground()}
	if err := cmd.Start(); err != nil {
		return 1, fmt.Errorf("starting %s: %w", c.program[0], err)
	}
	// The commands are printed beside the running program.
	showing, hide := context.WithCancel(ctx)
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		if c.showsDemonstration {
			d.showCommands(showing)
		}
	}()
	// The demonstration must not print after the exit code was determined.
	defer func() { hide(); <-shown }()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	// Either the program ends, or the user ends devcluster.
	select {
	case err := <-ended:
		return exitCode(cmd, err)
	case <-ctx.Done():
		return endGroup(cmd, ended)
	}
}

// isForeground reports whether this process is in the foreground group of its terminal. A background process would be
// stopped if it changed that group.
func (c *command) isForeground() bool {
	file, ok := c.stdin.(*os.File)
	if !ok {
		return false
	}
	group, err := unix.IoctlGetInt(int(file.Fd()), unix.TIOCGPGRP) // fails without a terminal
	return err == nil && group == unix.Getpgrp()
}

// endGroup sends one signal to the program and to all processes that it has started, and waits until all have ended.
// After killDelay, it kills them.
func endGroup(cmd *exec.Cmd, ended <-chan error) (int, error) {
	// A negative id addresses the process group.
	group := -cmd.Process.Pid
	// "go run" ends at SIGTERM without its program, but ignores SIGINT and waits for it.
	_ = syscall.Kill(group, syscall.SIGINT) // it fails if they have just ended
	var err error
	deadline, ticks := time.After(killDelay), time.NewTicker(groupInterval)
	defer ticks.Stop()
	// The program itself can end before its children, so the loop also waits for the group.
	for hasEnded := false; !hasEnded || syscall.Kill(group, 0) == nil; {
		select {
		case err = <-ended:
			hasEnded, ended = true, nil
		case <-ticks.C:
		case <-deadline:
			_ = syscall.Kill(group, syscall.SIGKILL)
			// The exit status is only known after the process was waited for.
			if !hasEnded {
				err = <-ended
			}
			return exitCode(cmd, err)
		}
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signal() == syscall.SIGINT {
		return 0, nil // the program ended as requested
	}
	return exitCode(cmd, err)
}

// exitCode returns the exit code of the program. For a program that was ended by a signal, it returns 1 and an error.
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
