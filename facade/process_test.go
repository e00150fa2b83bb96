package kopf_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// program is the environment variable that selects the program that this test binary runs instead of its tests.
const program = "KOPF_TEST_PROGRAM"

// programs are operators that misbehave around their handlers. Each prints "here" at the time of the first signal.
var programs = map[string]func(op *kopf.Operator){
	"startup obeys": func(op *kopf.Operator) { op.OnStartup("a", waiting[*kopf.Activity]) },
	"startup hangs": func(op *kopf.Operator) { op.OnStartup("a", hanging[*kopf.Activity]) },
	"startup is late": func(op *kopf.Operator) {
		op.OnStartup("a", func(context.Context, *kopf.Activity) error {
			printHere()
			return kopf.Temporary(fmt.Errorf("not yet"), time.Hour)
		})
	},
	"startup is interrupted":         func(op *kopf.Operator) { op.OnStartup("a", waiting[*kopf.Activity]) },
	"startup hangs, signalled twice": func(op *kopf.Operator) { op.OnStartup("a", hanging[*kopf.Activity]) },
	"startup hangs, interrupted":     func(op *kopf.Operator) { op.OnStartup("a", hanging[*kopf.Activity]) },
	"startup is killed":              func(op *kopf.Operator) { op.OnStartup("a", waiting[*kopf.Activity]) },
	"startup is restless": func(op *kopf.Operator) {
		op.OnStartup("a", func(_ context.Context, s *kopf.Activity) error {
			if s.Retry == 100 {
				printHere()
			}
			return kopf.Temporary(fmt.Errorf("not yet"), time.Millisecond)
		})
	},
	"startup fails": func(op *kopf.Operator) {
		op.OnStartup("a", func(context.Context, *kopf.Activity) error { return kopf.Permanent(fmt.Errorf("no pool")) })
	},
	"serves": func(op *kopf.Operator) {
		op.OnStartup("a", func(context.Context, *kopf.Activity) error {
			time.Sleep(300 * time.Millisecond)
			fmt.Println("started")
			return nil
		})
		op.WithManager(func(m ctrl.Manager) error {
			fmt.Println("set up")
			return m.Add(manager.RunnableFunc(func(context.Context) error {
				time.Sleep(300 * time.Millisecond)
				printHere()
				return nil
			}))
		})
	},
	"waits for peers": func(op *kopf.Operator) {
		op.OnStartup("a", func(_ context.Context, s *kopf.Activity) error {
			s.Settings.Peering.Name, s.Settings.Peering.Mandatory = "a", true
			return nil
		})
		op.WithManager(func(m ctrl.Manager) error {
			return m.Add(manager.RunnableFunc(func(context.Context) error { printHere(); return nil }))
		})
	},
	"login hangs": func(op *kopf.Operator) { op.OnLogin("a", hangingLogin) },
	"cleanup fails": func(op *kopf.Operator) {
		op.OnStartup("a", startAndPrintHere)
		op.OnCleanup(
			"b",
			func(context.Context, *kopf.Activity) error { return kopf.Permanent(fmt.Errorf("still in use")) },
		)
	},
	"cleanup succeeds": func(op *kopf.Operator) {
		op.OnStartup("a", startAndPrintHere)
		op.OnCleanup("b", func(context.Context, *kopf.Activity) error { fmt.Println("cleaned up"); return nil })
	},
	"cleanup is late": func(op *kopf.Operator) { // D-cleanup-limit
		op.OnStartup("a", startAndPrintHere)
		op.OnCleanup("b", func(context.Context, *kopf.Activity) error { return fmt.Errorf("still in use") })
	},
	"cleanup hangs": func(op *kopf.Operator) {
		op.OnStartup("a", func(ctx context.Context, s *kopf.Activity) error {
			s.Settings.CleanupTimeout = 100 * time.Millisecond
			return startAndPrintHere(ctx, s)
		})
		op.OnCleanup("b", hanging[*kopf.Activity])
	},
	"exit hangs": func(op *kopf.Operator) {
		op.OnStartup("a", func(ctx context.Context, s *kopf.Activity) error {
			s.Settings.UltimateExitingTimeout, s.Settings.CleanupTimeout = 300*time.Millisecond, kopf.Never
			return startAndPrintHere(ctx, s)
		})
		op.OnCleanup("b", hanging[*kopf.Activity])
	},
}

func hangingLogin(ctx context.Context, a *kopf.Activity) (*kopf.ConnectionInfo, error) {
	return nil, hanging(ctx, a)
}

func printHere() { fmt.Println("here") }

// startAndPrintHere is a startup handler that makes the test send the signal.
func startAndPrintHere(context.Context, *kopf.Activity) error { printHere(); return nil }

func waiting[A any](ctx context.Context, _ A) error {
	printHere()
	<-ctx.Done()
	return context.Cause(ctx)
}

func hanging[A any](context.Context, A) error {
	printHere()
	select {}
}

// runProgram runs the program that the environment selects, if any, and does not return then.
func runProgram() {
	if logging, ok := loggingPrograms[os.Getenv(program)]; ok {
		kopf.Main(logging())
	}
	register, ok := programs[os.Getenv(program)]
	if !ok {
		return
	}
	op := kopf.New("test.example.org", kopf.Settings{AddToScheme: runtime.SchemeBuilder{addWidgets}})
	kopf.For(op, &Widget{}).OnCreate("fn", succeed)
	register(op)
	kopf.Main(op)
}

// clusterOf writes the kubeconfig of a cluster that refuses and counts its requests.
func clusterOf(t *testing.T) (kubeconfig string, requests *atomic.Int64) {
	t.Helper()
	requests = &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	text := "apiVersion: v1\nkind: Config\ncurrent-context: c\n" +
		"clusters: [{name: c, cluster: {server: " + server.URL + "}}]\ncontexts: [{name: c, context: {cluster: c}}]\n"
	kubeconfig = filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig, requests
}

// processResult describes how a process ended.
type processResult struct {
	code     int
	duration time.Duration // since the last signal
	output   string
	requests int64
}

// runProcess runs a program and waits for its end. It sends the given number of signals, one after each "here" and the
// rest at once.
func runProcess(t *testing.T, name string, signals int) processResult {
	t.Helper()
	kubeconfig, requests := clusterOf(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // far more than it takes
	defer cancel()
	process := exec.CommandContext(ctx, os.Args[0], "-A", "--kubeconfig", kubeconfig)
	process.Env = append(os.Environ(), program+"="+name)
	var stderr strings.Builder
	process.Stderr = &stderr
	stdout, err := process.StdoutPipe()
	if err == nil {
		err = process.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var told strings.Builder
	pause := 1200 * time.Millisecond // a second signal within a second counts as the first
	if strings.HasSuffix(name, "twice") {
		pause = 100 * time.Millisecond // the system merges signals that are sent at once
	}
	signalled, next := time.Now(), time.Now()
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		told.WriteString(lines.Text() + "\n")
		if lines.Text() != "here" || signals == 0 {
			continue
		}
		for ; signals > 0; signals-- {
			time.Sleep(time.Until(next))
			if err := process.Process.Signal(signalFor(name)); err != nil {
				t.Error(err)
			}
			signalled, next = time.Now(), time.Now().Add(pause)
			if strings.HasPrefix(name, "cleanup") || strings.HasPrefix(name, "exit") {
				signals--
				break
			}
		}
	}
	_ = process.Wait()
	return processResult{process.ProcessState.ExitCode(), time.Since(signalled), told.String() + stderr.String(),
		requests.Load()}
}

func signalFor(name string) os.Signal {
	switch {
	case strings.HasSuffix(name, "killed"):
		return syscall.SIGKILL
	case strings.HasSuffix(name, "interrupted"):
		return syscall.SIGINT
	}
	return syscall.SIGTERM
}

// TestProcesses shows how a program ends, by signals and by the results of its activities.
func TestProcesses(t *testing.T) {
	cases := map[string]struct {
		reason      string
		program     string
		signals     int
		code        int
		minDuration time.Duration
		want        []string
		mayConnect  bool
		mustConnect bool
	}{
		"obeying startup": {
			reason: "a startup that obeys the exit is not an error", program: "startup obeys", signals: 1,
			want: []string{"Handler was interrupted"},
		},
		"startup that sleeps": {
			reason: "an exit does not wait for the next attempt of a startup", program: "startup is late", signals: 1,
		},
		"startup without an end": {
			reason: "an exit between two attempts ends a startup", program: "startup is restless", signals: 1,
		},
		"killed startup": {
			reason: "a killed startup has not sent any requests", program: "startup is killed", signals: 1,
			code: -1,
		},
		"hanging startup": {
			reason: "a hanging startup gets some time, and is named", program: "startup hangs", signals: 1, code: 1,
			minDuration: 5 * time.Second, want: []string{`handler "a" is abandoned`},
		},
		"hanging startup, a signal twice": {
			reason:  "a signal that timeout or tini -g sends twice counts once",
			program: "startup hangs, signalled twice",
			signals: 2, code: 1, minDuration: 4 * time.Second, want: []string{`handler "a" is abandoned`},
		},
		"hanging startup, two signals": {
			reason: "the second signal ends a hanging startup at once", program: "startup hangs", signals: 2, code: 1,
		},
		"Ctrl-C": {
			reason: "Ctrl-C is handled like SIGTERM", program: "startup is interrupted", signals: 1,
			want: []string{"Handler was interrupted"},
		},
		"Ctrl-C twice": {
			reason: "the second Ctrl-C ends a hanging startup at once", program: "startup hangs, interrupted",
			signals: 2,
			code:    1,
		},
		"hanging login": {
			reason: "a hanging login gets some time, and is named", program: "login hangs", signals: 1, code: 1,
			minDuration: 5 * time.Second, want: []string{`login: the operator is exiting`, `handler "a" is abandoned`},
		},
		"hanging login, two signals": {
			reason: "the second signal ends a hanging login at once", program: "login hangs", signals: 2, code: 1,
		},
		"failing startup": {
			reason: "the program ends with the error of a failed startup", program: "startup fails", code: 1,
			want: []string{`startup: handler "a" failed: no pool`},
		},
		"startup": {
			reason: "the cluster is only contacted after the startup", program: "serves", signals: 1, mayConnect: true,
			mustConnect: true,
			want:        []string{"started\nset up\nhere"},
		},
		"waiting for peers": {
			reason: "an exit while waiting for peers is not an error", program: "waits for peers", signals: 1,
			mayConnect: true,
		},
		"cleanup": {
			reason: "the cleanup is called before a graceful end", program: "cleanup succeeds", signals: 1,
			mayConnect: true,
			want:       []string{"cleaned up"},
		},
		"failing cleanup": {
			reason: "a failed cleanup is an error of the program", program: "cleanup fails", signals: 1, code: 1,
			mayConnect: true,
			want:       []string{`cleanup: handler "b" failed: still in use`},
		},
		"cleanup that is retried": {
			reason: "an exit does not wait for an attempt of a cleanup that is too late", program: "cleanup is late",
			signals: 1, code: 1,
			mayConnect: true, want: []string{`no time is left for another attempt; not finished: "b" (still in use)`},
		},
		"hanging cleanup": {
			reason: "a hanging cleanup gets some time, and is named", program: "cleanup hangs", signals: 1, code: 1,
			mayConnect:  true,
			minDuration: 5 * time.Second, want: []string{"CleanupTimeout", `handler "b" is abandoned`},
		},
		"hanging cleanup, two signals": {
			reason: "the second signal ends a hanging cleanup at once", program: "cleanup hangs", signals: 2, code: 1,
			mayConnect: true,
		},
		"exit without an end": {
			reason: "the last time limit kills the process", program: "exit hangs", signals: 1, code: 137,
			mayConnect:  true,
			minDuration: 300 * time.Millisecond, want: []string{"Killing the process"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := runProcess(t, c.program, c.signals)
			if got.code != c.code {
				t.Errorf("%s: exit code %d, want %d:\n%s", c.reason, got.code, c.code, got.output)
			}
			for _, want := range c.want {
				if !strings.Contains(got.output, want) {
					t.Errorf("%s\nwant %q, got:\n%s", c.reason, want, got.output)
				}
			}
			if c.signals > 1 && c.minDuration == 0 && strings.Contains(got.output, "is abandoned") {
				t.Errorf("%s: the program waited after the second signal:\n%s", c.reason, got.output)
			}
			if most := c.minDuration + 15*time.Second; got.duration < c.minDuration || got.duration > most {
				t.Errorf("%s: took %s, want %s to %s:\n%s", c.reason, got.duration, c.minDuration, most, got.output)
			}
			if c.mustConnect && got.requests == 0 {
				t.Errorf("%s: the program must send requests", c.reason)
			}
			if !c.mayConnect && got.requests > 0 {
				t.Errorf("%s: %d requests before the startup has succeeded", c.reason, got.requests)
			}
		})
	}
}
