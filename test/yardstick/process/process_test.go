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

// roleVariable turns the test binary into an operator.
const roleVariable = "YARDSTICK_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "":
		os.Exit(m.Run())
	case "telling":
		_ = process.WriteFigure(os.Stdout, "ticks", 12.5)
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
		"empty": {reason: "a process without a stat file content is an error", wantErr: "too few fields"},
		"not a time": {
			reason: "a malformed time is an error and not zero", stat: line("ours",
				"x"), status: status, wantErr: "invalid syntax",
		},
		"no memory": {
			reason: "a zombie process has CPU but no memory, which is an error",
			stat:   line("ours", "150"), status: "Name:\tours\n", wantErr: "no VmRSS",
		},
		"plain": {
			reason: "user and kernel time are added, and memory is in kilobytes",
			stat:   line("ours", "150"), status: status,
			want: process.Usage{CPU: 1750 * time.Millisecond, Resident: 1 << 20, Peak: 2 << 20, Anonymous: 512 << 10},
		},
		"name with parentheses and spaces": {
			reason: "a program name can contain parentheses and spaces", stat: line("a) R 1 (b", "150"), status: status,
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

// line returns a line of /proc/PID/stat with 25 hundredths of a second in the kernel.
func line(name, user string) string {
	return "4242 (" + name + ") S 1 4242 4242 0 -1 4194560 1000 0 0 0 " + user + " 25 0 0 20 0 12 0 100 0 0\n"
}

// TestOwnUsage measures this process, because the format of the running kernel matters.
func TestOwnUsage(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	got, err := process.Measure(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if got.Resident == 0 || got.Peak < got.Resident {
		t.Errorf("this process uses memory, at most its peak: %+v", got)
	}
}

// TestFigureLines shows that figures arrive as lines of the output, among other lines.
func TestFigureLines(t *testing.T) {
	t.Setenv(roleVariable, "telling")
	p := start(t)
	told, err := p.Await(t.Context(), "ticks", 1)
	if err != nil {
		t.Fatal(err)
	}
	if told[0].Value != 12.5 || told[0].ReceivedAt.Before(p.StartedAt()) {
		t.Errorf("want 12.5 ticks, printed after the start, got %+v", told)
	}
	if err := p.Err(); err != nil {
		t.Errorf("a running program has no error: %v", err)
	}
	p.Stop()
	if p.Err() == nil {
		t.Error("a stopped program has an error")
	}
}

// TestFailing shows that the error of an operator that ends by itself contains the reason.
func TestFailing(t *testing.T) {
	t.Setenv(roleVariable, "failing")
	p := start(t)
	<-p.Done()
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "exit status 3") ||
		!strings.Contains(err.Error(), "no cluster") {
		t.Errorf("the error has the exit status and the end of the log, got: %v", err)
	}
	if _, err := p.Usage(); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("measuring an ended program returns its exit status, got: %v", err)
	}
}

// TestAwaitEndsWithContext shows that a wait for lines that never come ends with the cause of the context.
func TestAwaitEndsWithContext(t *testing.T) {
	t.Setenv(roleVariable, "telling")
	p := start(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if _, err := p.Await(ctx, "all", 1); !errors.Is(err, enough) {
		t.Errorf("want the cause of the context, got %v", err)
	}
}

func TestLatency(t *testing.T) {
	sent := time.Unix(1_700_000_000, 0)
	var text strings.Builder
	for _, change := range []string{"made", "1700000000000000000"} {
		if err := process.WriteLatency(&text, change, sent.Add(1500*time.Microsecond)); err != nil {
			t.Fatal(err)
		}
	}
	if want := "yardstick latency 1.5\n"; text.String() != want {
		t.Errorf("a change without a time is skipped: want %q, got %q", want, text.String())
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
