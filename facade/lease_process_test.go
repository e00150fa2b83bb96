package kopf_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// leaders are programs that run as a leader, and print a line for each renewal of the lease and for each tick of a
// timer.
var leaders = map[string]func() error{
	"leads, unseen": func() error { return runLeadingManager(false, ctrl.Options{}) },
	"leads, seen": func() error {
		duration, deadline, retry := 2*time.Second, time.Second, 200*time.Millisecond
		return runLeadingManager(true, ctrl.Options{LeaseDuration: &duration, RenewDeadline: &deadline,
			RetryPeriod: &retry})
	},
}

// runLeader runs the leader that the environment selects, if any, and does not return then.
func runLeader() {
	run, ok := leaders[os.Getenv(program)]
	if !ok {
		return
	}
	fmt.Println(run())
	os.Exit(1)
}

// printedLock delays each renewal of the lease and prints a line for it, unless the process was stopped during the
// delay.
type printedLock struct {
	fakeLock

	lag time.Duration
}

func (l *printedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	sent := time.Now()
	if time.Sleep(l.lag); time.Since(sent) < l.lag+time.Second {
		fmt.Println("renewal")
	}
	return l.fakeLock.Update(ctx, record)
}

// runLeadingManager runs an operator in a manager with leader election.
func runLeadingManager(seen bool, options ctrl.Options) error {
	memory := memapi.New()
	memory.Install(widgetResource)
	memory.Put(widgetResource, body(map[string]any{"size": int64(1)}))
	op := kopf.New("test.example.org")
	kopf.For(op, &Widget{}).Timer("tick", 50*time.Millisecond, func(context.Context, *kopf.Task[*Widget]) error {
		fmt.Println("tick")
		return nil
	})
	options.Scheme, options.Logger = runtime.NewScheme(), logr.Discard()
	options.Metrics = metricsserver.Options{BindAddress: "0"}
	options.LeaderElection, options.LeaderElectionID = true, "l"
	options.LeaderElectionResourceLockInterface = &printedLock{}
	if seen {
		options.LeaderElectionResourceLockInterface = op.LeaderLock(&printedLock{lag: 300 * time.Millisecond})
	}
	if err := addWidgets(options.Scheme); err != nil {
		return err
	}
	m, err := ctrl.NewManager(memapi.Config(memory), options)
	if err == nil {
		err = op.SetupWithManager(m)
	}
	if err != nil {
		return err
	}
	return m.Start(context.Background())
}

// stoppableProcess is a process that can be stopped and continued by signals.
type stoppableProcess struct {
	t       *testing.T
	process *exec.Cmd
	mu      sync.Mutex
	lines   []string
}

func startStoppable(t *testing.T, name string) *stoppableProcess {
	t.Helper()
	f := &stoppableProcess{t: t, process: exec.CommandContext(t.Context(), os.Args[0])}
	f.process.Env = append(os.Environ(), program+"="+name)
	stdout, err := f.process.StdoutPipe()
	if err == nil {
		err = f.process.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			f.mu.Lock()
			f.lines = append(f.lines, lines.Text())
			f.mu.Unlock()
		}
	}()
	t.Cleanup(func() { _ = f.process.Process.Kill(); _ = f.process.Wait() })
	return f
}

// linesSince returns the lines after the given number of lines, as soon as they contain enough ticks.
func (f *stoppableProcess) linesSince(lines, ticks int) []string {
	f.t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		f.mu.Lock()
		all := slices.Clone(f.lines[lines:])
		f.mu.Unlock()
		count := 0
		for _, line := range all {
			if line == "tick" {
				count++
			}
		}
		if count >= ticks {
			return all
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("the timer ticked %d times, want %d:\n%q", count, ticks, all)
		}
	}
}

func (f *stoppableProcess) signal(s syscall.Signal) {
	f.t.Helper()
	if err := f.process.Process.Signal(s); err != nil {
		f.t.Fatal(err)
	}
}

// TestFrozenLeader shows that a leader that was stopped for longer than its lease allows calls no handler until its
// elector has renewed the lease. The call during which it was stopped may end.
func TestFrozenLeader(t *testing.T) {
	for name, c := range map[string]struct {
		reason   string
		program  string
		freeze   time.Duration
		renewals int // before the second tick
	}{
		"Seen": {"with LeaderLock, handlers run again after the first renewal", "leads, seen", 3 * time.Second, 1},
		"Unseen": {"without LeaderLock, handlers wait until the elector has had time to notice the loss",
			"leads, unseen", 6 * time.Second, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startStoppable(t, c.program)
			f.linesSince(0, 10)
			f.signal(syscall.SIGSTOP)
			time.Sleep(c.freeze) // the process has to be stopped in real time
			f.mu.Lock()
			before := len(f.lines)
			f.mu.Unlock()
			f.signal(syscall.SIGCONT)
			renewals, ticks := 0, 0
			for _, line := range f.linesSince(before, 10) {
				switch {
				case line == "renewal":
					renewals++
				case line == "tick" && ticks > 0 && renewals < c.renewals:
					t.Fatalf("%s: %d handlers were called after %d renewals, want %d renewals first", c.reason,
						ticks+1, renewals, c.renewals)
				case line == "tick":
					ticks++
				}
			}
		})
	}
}
