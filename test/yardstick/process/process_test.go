package process_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/yardstick/process"
)

// role makes this program the operator of a test.
const role = "YARDSTICK_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		os.Exit(m.Run())
	case "telling":
		_ = process.Tell(os.Stdout, "ticks", 12.5)
		select {} // until it is stopped
	case "failing":
		_, _ = os.Stderr.WriteString("no cluster\n")
		os.Exit(3)
	}
}

const status = "Name:\tours\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nRssAnon:\t     512 kB\n"

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason       string
		stat, status string
		want         process.Usage
		wantErr      string
	}{
		"empty": {reason: "the process has just gone", wantErr: "too few fields"},
		"not a time": {
			reason: "an unknown form is no zero", stat: line("ours", "x"), status: status, wantErr: "invalid syntax",
		},
		"no memory": {
			reason: "a process that has ended and was not waited for has CPU, but no memory",
			stat:   line("ours", "150"), status: "Name:\tours\n", wantErr: "no VmRSS",
		},
		"plain": {
			reason: "hundredths of a second in the program and in the kernel, and kilobytes",
			stat:   line("ours", "150"), status: status,
			want: process.Usage{CPU: 1750 * time.Millisecond, Resident: 1 << 20, Peak: 2 << 20, Anonymous: 512 << 10},
		},
		"name with parentheses and spaces": {
			reason: "a program may be called anything", stat: line("a) R 1 (b", "150"), status: status,
			want: process.Usage{CPU: 1750 * time.Millisecond, Resident: 1 << 20, Peak: 2 << 20, Anonymous: 512 << 10},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := process.Parse(tc.stat, tc.status)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("%s: want an error with %q, got %v", tc.reason, tc.wantErr, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
		})
	}
}

// line is one of /proc/PID/stat, with 25 hundredths of a second in the kernel.
func line(name, user string) string {
	return "4242 (" + name + ") S 1 4242 4242 0 -1 4194560 1000 0 0 0 " + user + " 25 0 0 20 0 12 0 100 0 0\n"
}

// TestOwnUsage asks the kernel that is there, as its files are what matters.
func TestOwnUsage(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	got, err := process.Measure(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if got.Resident == 0 || got.Peak < got.Resident {
		t.Errorf("this process has memory, and never had more than at its peak: %+v", got)
	}
}

// TestTelling is about what only the operator can know: it comes as a line, and other lines do not disturb.
func TestTelling(t *testing.T) {
	t.Setenv(role, "telling")
	p := start(t)
	told, err := p.Await(t.Context(), "ticks", 1)
	if err != nil {
		t.Fatal(err)
	}
	if told[0].Value != 12.5 || told[0].At.Before(p.Begun()) {
		t.Errorf("told were 12.5 ticks after the start, got %+v", told)
	}
	if err := p.Err(); err != nil {
		t.Errorf("it runs, so there is no error: %v", err)
	}
	p.Stop()
	if p.Err() == nil {
		t.Error("it was stopped, and nothing tells so")
	}
}

// TestFailing is about an operator that ends by itself: whoever waits for it is to learn why.
func TestFailing(t *testing.T) {
	t.Setenv(role, "failing")
	p := start(t)
	<-p.Done()
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "exit status 3") ||
		!strings.Contains(err.Error(), "no cluster") {
		t.Errorf("the exit status and the end of the log are wanted, got: %v", err)
	}
	if _, err := p.Usage(); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("what has ended cannot be measured, and the reason is not that there is no /proc, got: %v", err)
	}
}

// TestNothingTold is about an operator that never tells: whoever waits gives up with the reason of the context.
func TestNothingTold(t *testing.T) {
	t.Setenv(role, "telling")
	p := start(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if _, err := p.Await(ctx, "all", 1); !errors.Is(err, enough) {
		t.Errorf("want the reason of the end, got %v", err)
	}
}

func TestLatency(t *testing.T) {
	sent := time.Unix(1_700_000_000, 0)
	var text strings.Builder
	for _, change := range []string{"made", "1700000000000000000"} {
		if err := process.TellLatency(&text, change, sent.Add(1500*time.Microsecond)); err != nil {
			t.Fatal(err)
		}
	}
	if want := "yardstick latency 1.5\n"; text.String() != want {
		t.Errorf("a change that has no time is not timed: want %q, got %q", want, text.String())
	}
}

func start(t *testing.T) *process.Process {
	t.Helper()
	p, err := process.Start([]string{os.Args[0]}, nil, filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}
