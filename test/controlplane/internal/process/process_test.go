//go:build unix

package process_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/test/controlplane/internal/process"
)

// roleVariable makes this test binary play the starter that TestStarterKilled kills.
const roleVariable = "PROCESS_TEST_STARTER_FOLDER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(roleVariable); dir != "" {
		playStarter(dir)
	}
	os.Exit(m.Run())
}

func TestRun(t *testing.T) {
	cases := map[string]struct {
		reason string
		script string
		cancel bool
		want   func(error) bool
	}{
		"fails": {
			reason: "the program's own exit code is the caller's business",
			script: "exit 3",
			want: func(err error) bool {
				exit, ok := errors.AsType[*exec.ExitError](err)
				return ok && exit.ExitCode() == 3
			},
		},
		"cancelled": {
			reason: "a cancelled run ends at once with the cancellation's cause, grandchildren included",
			script: "trap '' TERM; sleep 1000 & echo ready; wait",
			cancel: true,
			want:   func(err error) bool { return errors.Is(err, errGivenUp) },
		},
		"succeeds": {
			reason: "exit status 0 is not an error",
			script: "exit 0",
			want:   func(err error) bool { return err == nil },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			read, write := pipe(t)
			cmd := exec.Command("sh", "-c", tc.script)
			cmd.Stdout = write
			if tc.cancel {
				go func() {
					_, _ = bufio.NewReader(read).ReadString('\n')
					cancel(errGivenUp)
				}()
			}
			if err := process.Run(ctx, cmd); !tc.want(err) {
				t.Errorf("%s: got error %v", tc.reason, err)
			}
			write.Close()
			waitEOF(t, read)
		})
	}
}

var errGivenUp = errors.New("given up")

func TestRunMissingProgram(t *testing.T) {
	err := process.Run(t.Context(), exec.Command(filepath.Join(t.TempDir(), "absent")))
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that is not there: got error %v, want one that is os.ErrNotExist", err)
	}
}

func TestStop(t *testing.T) {
	cases := map[string]struct {
		reason string
		script string
		grace  time.Duration
		want   string
	}{
		"deaf": {
			reason: "a program that ignores SIGTERM is killed after the grace period",
			script: "trap '' TERM; echo ready; while :; do sleep 1000; done",
			grace:  50 * time.Millisecond,
			want:   "signal: killed",
		},
		"polite": {
			reason: "what listens gets the time to end by itself",
			script: "trap 'exit 7' TERM; echo ready; sleep 1000 & wait",
			grace:  time.Minute,
			want:   "exit status 7",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			read, write := pipe(t)
			cmd := exec.Command("sh", "-c", tc.script)
			cmd.Stdout = write
			p, err := process.Start(cmd)
			if err != nil {
				t.Fatal(err)
			}
			write.Close()
			if _, err := bufio.NewReader(read).ReadString('\n'); err != nil {
				t.Fatalf("waiting for the program: %v", err)
			}
			p.Stop(tc.grace)
			p.Stop(tc.grace) // an ended program may be stopped again
			if got := fmt.Sprint(p.Err()); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
			waitEOF(t, read) // the program's children are gone as well
		})
	}
}

func TestStarterKilled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	read, write := pipe(t)
	starter := exec.Command(os.Args[0])
	starter.Env = append(os.Environ(), roleVariable+"="+dir)
	starter.Stdout = write
	if err := starter.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	out := bufio.NewReader(read)
	if line, err := out.ReadString('\n'); err != nil || !strings.HasPrefix(line, "started") {
		t.Fatalf("the starter said %q, %v", line, err)
	}
	if err := starter.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = starter.Wait()
	waitEOF(t, out) // its programs hold the other end
	eventually(t, "the folder is removed", func() bool {
		_, err := os.Stat(dir)
		return errors.Is(err, os.ErrNotExist)
	})
}

func TestWatchdogDismissed(t *testing.T) {
	dir := t.TempDir()
	w, err := process.Watch(dir)
	if err != nil {
		t.Fatal(err)
	}
	w.Dismiss()
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("a dismissed watchdog does not act: %v", err)
	}
}

// playStarter starts a watched program that shares its output, and waits to be killed.
func playStarter(dir string) {
	w, err := process.Watch(dir)
	if err != nil {
		panic(err)
	}
	cmd := exec.Command("sh", "-c", "sleep 1000 & wait")
	cmd.Stdout = os.Stdout
	p, err := process.Start(cmd)
	if err != nil {
		panic(err)
	}
	if err := w.Guard(p); err != nil {
		panic(err)
	}
	fmt.Println("started")
	<-p.Done()
	os.Exit(1)
}

func pipe(t *testing.T) (read, write *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { read.Close(); write.Close() })
	return read, write
}

// waitEOF returns when the other end of the pipe is closed in all processes.
func waitEOF(t *testing.T, r io.Reader) {
	t.Helper()
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Fatalf("waiting for the programs' end: %v", err)
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(3 * time.Minute)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain until %s", what)
		}
	}
}
