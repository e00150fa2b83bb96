package process

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// drain is how long output of an ended program's own children may keep it from counting as ended.
const drain = 2 * time.Second

// Process is a running or ended program.
type Process struct {
	cmd      *exec.Cmd
	hasGroup bool
	done     chan struct{}
	err      error // written before done is closed
}

// Start runs cmd in a process group of its own, so that a Ctrl-C at the terminal reaches the caller alone and Stop
// reaches the program's children too. On Linux the kernel ends the program when the caller dies.
func Start(cmd *exec.Cmd) (*Process, error) {
	cmd.SysProcAttr = attributes(true)
	return start(cmd, true)
}

// StartAttached is Start for a program that shares the caller's terminal: it stays in the caller's process group.
func StartAttached(cmd *exec.Cmd) (*Process, error) {
	cmd.SysProcAttr = attributes(false)
	return start(cmd, false)
}

// startFree is Start without the kernel's death signal, for a program that must outlive its caller.
func startFree(cmd *exec.Cmd) (*Process, error) {
	cmd.SysProcAttr = separate()
	return start(cmd, true)
}

func start(cmd *exec.Cmd, group bool) (*Process, error) {
	if cmd.WaitDelay == 0 {
		cmd.WaitDelay = drain
	}
	p := &Process{cmd: cmd, hasGroup: group, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel's death signal is tied to the thread that forked: it has to live as long as the program.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			if group { // a program that ended by itself may have left children
				_ = send(p.PID(), group, syscall.SIGKILL)
			}
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	return p, nil
}

// Run starts cmd as Start does and waits for its end. When ctx ends first, the whole group is killed and ctx's cause
// is the error; else the error is that of exec.Cmd.Wait.
func Run(ctx context.Context, cmd *exec.Cmd) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p, err := Start(cmd)
	if err != nil {
		return err
	}
	select {
	case <-p.Done():
		return p.Err()
	case <-ctx.Done():
		p.Stop(0)
		return context.Cause(ctx)
	}
}

// PID returns the program's process id, which is also the group's id after Start.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the program has ended and was waited for.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the program ended, like exec.Cmd.Wait. It must not be called before Done is closed.
func (p *Process) Err() error { return p.err }

// Signal sends a signal to the program, and to its group where it has one of its own. It ignores an ended program.
func (p *Process) Signal(signal syscall.Signal) error {
	select {
	case <-p.done: // its id may belong to another program by now
		return nil
	default:
	}
	if err := send(p.PID(), p.hasGroup, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("sending %v to %s: %w", signal, p.cmd.Path, err)
	}
	return nil
}

// Stop asks the program to end, kills it after the grace (at once if that is zero), and returns when it has ended.
func (p *Process) Stop(grace time.Duration) {
	if grace > 0 && p.Signal(syscall.SIGTERM) == nil {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-p.done:
			return
		case <-timer.C:
		}
	}
	_ = p.Signal(syscall.SIGKILL) // refused only for a program that is not ours any more
	<-p.done
}
