package quickstart_test

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// killDelay is how long a process may take to end after Ctrl-C. The command devcluster waits 15 seconds for its
// program.
const killDelay = 30 * time.Second

// process is a command that runs beside the others.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	// isOperator is set for a command that runs an operator, alone or on a cluster that it starts.
	isOperator bool

	mu      sync.Mutex
	changed *sync.Cond // lines or hasEnded have changed
	lines   []string
	// nextLine is the first line that await has not seen.
	nextLine int
	hasEnded bool
}

// start starts lines of a shell.
func (r *reader) start(ctx context.Context, lines string) *process {
	r.t.Helper()
	// stop ends the process; a kill of a cluster would leave its program running.
	p := &process{t: r.t, cmd: r.command(context.WithoutCancel(ctx), lines)}
	p.changed = sync.NewCond(&p.mu)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, in := io.Pipe()
	p.cmd.Stdout, p.cmd.Stderr = in, in
	if err := p.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.processes = append(r.processes, p)
	go func() { _ = in.CloseWithError(p.cmd.Wait()) }()
	go p.read(out)
	context.AfterFunc(ctx, p.stop)
	return p
}

// read keeps the lines of the output.
func (p *process) read(out io.Reader) {
	scanner := bufio.NewScanner(out)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		p.mu.Lock()
		p.lines = append(p.lines, scanner.Text())
		p.changed.Broadcast()
		p.mu.Unlock()
	}
	p.mu.Lock()
	p.hasEnded = true
	p.changed.Broadcast()
	p.mu.Unlock()
}

// await returns the next line with the text.
func (p *process) await(text string) string {
	p.t.Helper()
	return p.awaitLine(text, func(line string) bool { return strings.Contains(line, text) })
}

// awaitLine returns the next line that the function selects.
func (p *process) awaitLine(what string, isSelected func(line string) bool) string {
	p.t.Helper()
	isLate := false
	late := time.AfterFunc(lineTimeout, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		isLate = true
		p.changed.Broadcast()
	})
	defer late.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		for p.nextLine < len(p.lines) {
			p.nextLine++
			if line := p.lines[p.nextLine-1]; isSelected(line) {
				return line
			}
		}
		if p.hasEnded || isLate {
			p.t.Fatalf("the process has not printed %q:\n%s", what, strings.Join(p.lines, "\n"))
		}
		p.changed.Wait()
	}
}

// rewind has await begin with the first line.
func (p *process) rewind() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nextLine = 0
}

// stop presses Ctrl-C and waits for the end.
func (p *process) stop() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGINT) // fails if the process has ended
	kill := time.AfterFunc(killDelay, func() { _ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) })
	defer kill.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.hasEnded {
		p.changed.Wait()
	}
}
