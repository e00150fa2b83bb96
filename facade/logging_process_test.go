package kopf_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// loggingPrograms are operators that log, and print "here" when their object is handled.
var loggingPrograms = map[string]func() *kopf.Operator{
	"logs": func() *kopf.Operator { return newLoggingOperator(kopf.Settings{}) },
	"logs by itself": func() *kopf.Operator {
		return newLoggingOperator(kopf.Settings{LogHandler: slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{
			Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			},
		})})
	},
	"logs by the standard library": func() *kopf.Operator {
		op := newLoggingOperator(kopf.Settings{})
		op.OnStartup("print", func(context.Context, *kopf.Activity) error {
			log.Print("printed by log")
			slog.Warn("printed by slog")
			return nil
		})
		return op
	},
	"makes an operator": earlyLog,
	"log panics":        func() *kopf.Operator { return newLoggingOperator(kopf.Settings{LogHandler: panickingLog{}}) },
	"log hangs at the end": func() *kopf.Operator {
		own := kopf.Settings{LogHandler: hangingLog{panickingLog{}}}
		own.UltimateExitingTimeout = 300 * time.Millisecond
		op := newLoggingOperator(own)
		op.OnCleanup("hang", hanging[*kopf.Activity])
		return op
	},
}

// earlyLog counts the uses of the logger by kopf.New, and ends the process.
func earlyLog() *kopf.Operator {
	uses := 0
	logf.Log = logr.Discard().WithSink(countingSink{&uses})
	kopf.New("test.example.org", kopf.Settings{})
	fmt.Println("uses:", uses)
	os.Exit(0)
	return nil
}

// countingSink counts the loggers that are derived from it.
type countingSink struct{ useCount *int }

func (s countingSink) Init(logr.RuntimeInfo)          { *s.useCount++ }
func (s countingSink) Enabled(int) bool               { *s.useCount++; return false }
func (s countingSink) Info(int, string, ...any)       { *s.useCount++ }
func (s countingSink) Error(error, string, ...any)    { *s.useCount++ }
func (s countingSink) WithValues(...any) logr.LogSink { *s.useCount++; return s }
func (s countingSink) WithName(string) logr.LogSink   { *s.useCount++; return s }

// TestNewLeavesTheLoggerAlone shows that kopf.New does not use controller-runtime's logger. The logger is set after the
// operator is made, if at all, and tests make operators long after the start of the process: a use before that would
// discard all logs and print a stack trace.
func TestNewLeavesTheLoggerAlone(t *testing.T) {
	process := exec.CommandContext(t.Context(), os.Args[0])
	process.Env = append(os.Environ(), program+"=makes an operator")
	output, err := process.CombinedOutput()
	if err != nil || string(output) != "uses: 0\n" {
		t.Errorf("kopf.New must not use the logger: got %q, error %v", output, err)
	}
}

// panickingLog panics with each line.
type panickingLog struct{}

func (panickingLog) Enabled(context.Context, slog.Level) bool  { return true }
func (panickingLog) Handle(context.Context, slog.Record) error { panic("no disk") }
func (l panickingLog) WithAttrs([]slog.Attr) slog.Handler      { return l }
func (l panickingLog) WithGroup(string) slog.Handler           { return l }

// hangingLog blocks at the line that reports the kill of the process.
type hangingLog struct{ panickingLog }

func (hangingLog) Handle(_ context.Context, record slog.Record) error {
	if record.Level >= slog.LevelError && strings.Contains(record.Message, "Killing") {
		select {}
	}
	return nil
}

func (l hangingLog) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l hangingLog) WithGroup(string) slog.Handler      { return l }

// newLoggingOperator returns an operator whose parts all log. One of its handlers fails once, in a way that the
// framework warns of.
func newLoggingOperator(settings kopf.Settings) *kopf.Operator {
	settings.AddToScheme = runtime.SchemeBuilder{addWidgets}
	op := kopf.New("test.example.org", settings)
	op.OnStartup("open", func(context.Context, *kopf.Activity) error { return nil })
	op.OnCleanup("close", func(context.Context, *kopf.Activity) error { return nil })
	widgets := kopf.For(op, &Widget{})
	widgets.OnCreate("create", func(ctx context.Context, c *Change) error {
		if c.Retry == 0 {
			return kopf.Temporary(fmt.Errorf("not yet"), 1)
		}
		logf.FromContext(ctx).Info("Created", "size", c.Object.Spec.Size)
		slog.New(logr.ToSlogHandler(logf.FromContext(ctx))).Warn("Disk is nearly full", "free", 1)
		return nil
	})
	widgets.OnEvent("event", func(_ context.Context, e *kopf.WatchEvent[*Widget]) error {
		for key := range e.Object.Annotations {
			if strings.HasSuffix(key, "/last-handled-configuration") {
				printHere()
			}
		}
		return nil
	})
	return op
}

// logOf runs one of the programs until its object is handled, stops it by SIGTERM, and returns its log.
func logOf(t *testing.T, name string, args ...string) (lines []string) {
	t.Helper()
	var stderr strings.Builder
	if code := runLogging(t, name, &stderr, append(args, "--debug-bind-address=0")...); code != 0 {
		t.Errorf("exit code %d:\n%s", code, stderr.String())
	}
	return strings.Split(strings.TrimSuffix(stderr.String(), "\n"), "\n")
}

// runLogging runs one of the programs until its object is handled, stops it by SIGTERM, and returns its exit code.
func runLogging(t *testing.T, name string, stderr io.Writer, args ...string) (code int) {
	t.Helper()
	server := memapi.New()
	server.Install(widgetResource)
	server.Put(widgetResource, body(map[string]any{"size": int64(1)}))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // far more than it takes
	defer cancel()
	process := exec.CommandContext(ctx, os.Args[0], append([]string{"--kubeconfig", serve(t, server)}, args...)...)
	process.Env, process.Stderr = append(os.Environ(), program+"="+name), stderr
	stdout, err := process.StdoutPipe()
	if err == nil {
		err = process.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	signalled := false
	for told := bufio.NewScanner(stdout); told.Scan(); {
		if told.Text() == "here" && !signalled {
			signalled = true
			if err := process.Process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
		}
	}
	_ = process.Wait()
	if !signalled {
		t.Errorf("the object was not handled: exit code %d", process.ProcessState.ExitCode())
	}
	return process.ProcessState.ExitCode()
}

// TestLogOfAProgram shows the whole log of an operator from start to stop, which has no lines of the libraries below.
func TestLogOfAProgram(t *testing.T) {
	const (
		opened = "Handler succeeded handler=open activity=startup attempt=1"
		scope  = "Neither -n nor -A is given: the whole cluster is served. Say -A to confirm that, or -n to choose " +
			"namespaces"
		delay = "Waiting a second after a temporary error: its delay is too short to be meant; logged once for the " +
			`handler delay="1ns: did you mean 1*time.Second?" handler=create reason=create attempt=1`
		failed  = `Handler failed temporarily; retrying after=1s error="not yet" handler=create reason=create attempt=1`
		created = "Created size=1 handler=create reason=create attempt=2"
		full    = "Disk is nearly full free=1 handler=create reason=create attempt=2"
		done    = "Handler succeeded handler=create reason=create attempt=2"
		closed  = "Handler succeeded handler=close activity=cleanup attempt=1"
		started = `Operator started kinds="example.org/v1 Widget" handlers=2 namespaces=["*"] ` +
			`coordination="peering \"test.example.org\" with priority 0, if it exists"`
		stopped = "Operator stopped"
		o       = "[ns/w1] "
	)
	cases := map[string]struct {
		reason string
		args   []string
		want   []string
	}{
		"usual": {
			"the log has all results, warnings and errors", []string{"-A"},
			[]string{
				opened, started, o + delay, o + failed, o + created, o + full, o + done, stopped, closed,
			},
		},
		"quiet": {
			"--quiet keeps warnings and errors, of handlers and of the framework", []string{"--quiet"},
			[]string{scope, o + delay, o + failed, o + full},
		},
		"no prefix": {
			"--no-log-prefix removes the object from the lines", []string{"-qA", "--no-log-prefix"},
			[]string{delay, failed, full},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(c.want, logOf(t, "logs", append(c.args, "--log-format=plain")...)); d != "" {
				t.Errorf("%s\n-want, +got:\n%s", c.reason, d)
			}
		})
	}
}

// TestJSONLogOfAProgram shows that each line about the object has the chosen key and prefix.
func TestJSONLogOfAProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	t.Parallel()
	want := map[string]any{
		"apiVersion": "example.org/v1", "kind": "Widget", "namespace": "ns", "name": "w1", "uid": "uid-1",
	}
	about := 0
	for _, line := range logOf(t, "logs", "-A", "-v", "--log-format=json", "--log-refkey=it", "--log-prefix") {
		var got struct {
			Message  string         `json:"message"`
			It       map[string]any `json:"it"`
			Activity any            `json:"activity"`
			Login    any            `json:"login"`
			Peering  any            `json:"peering"`
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Errorf("%v: %s", err, line)
		}
		ofOperator := got.Message == "Operator started" || got.Message == "Operator stopped"
		if got.Activity != nil || got.Login != nil || got.Peering != nil || ofOperator {
			continue
		}
		about++
		if d := cmp.Diff(want, got.It); d != "" || !strings.HasPrefix(got.Message, "[ns/w1] ") {
			t.Errorf("%s: -want, +got:\n%s", line, d)
		}
	}
	if about < 6 {
		t.Errorf("the log has %d lines about the object, want at least 6", about)
	}
}

// TestStandardLogOfAProgram shows that the lines of the standard library's loggers are in the log of the program.
// net/http uses such a logger for TLS handshake errors of the webhook server.
func TestStandardLogOfAProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	t.Parallel()
	var got []string
	for _, line := range logOf(t, "logs by the standard library", "-A", "--log-format=json") {
		var shown struct{ Message, Severity string }
		if err := json.Unmarshal([]byte(line), &shown); err != nil {
			t.Errorf("%v: %s", err, line)
		}
		if strings.HasPrefix(shown.Message, "printed") {
			got = append(got, shown.Message+" "+shown.Severity)
		}
	}
	if d := cmp.Diff([]string{"printed by log info", "printed by slog warn"}, got); d != "" {
		t.Errorf("lines of the standard loggers: -want, +got:\n%s", d)
	}
}

// TestOwnLogOfAProgram shows that a log handler of the program gets all lines of the operator, and no lines of the
// libraries.
func TestOwnLogOfAProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	t.Parallel()
	const object = " apiVersion=example.org/v1 kind=Widget namespace=ns name=w1 uid=uid-1"
	lines := logOf(t, "logs by itself", "-A")
	text := strings.Join(lines, "\n")
	for _, want := range []string{
		"level=INFO msg=Created" + object + " handler=create reason=create attempt=2 logger=test.example.org size=1",
		`level=WARN msg="Disk is nearly full"` + object + " handler=create", "level=ERROR msg=",
		`level=DEBUG msg="Handler succeeded"` + object + " handler=event",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in:\n%s", want, text)
		}
	}
	for _, line := range lines {
		if !strings.Contains(line, "logger=test.example.org") {
			t.Errorf("the log must not have lines of other loggers: %s", line)
		}
	}
}

// TestProgramsWithoutALog shows that a broken log does not end the program, and does not keep the process from ending.
func TestProgramsWithoutALog(t *testing.T) {
	t.Run("closed", func(t *testing.T) {
		t.Parallel()
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = writer.Close() }()
		_ = reader.Close()
		if code := runLogging(t, "logs", writer, "-A"); code != 0 {
			t.Errorf("a log whose reader is closed must not end the program: exit code %d", code)
		}
	})
	t.Run("panicking", func(t *testing.T) {
		t.Parallel()
		lines := logOf(t, "log panics", "-A")
		const want = "Log handler of the program failed; lines of the log may be missing; logged once error=" +
			`"panic: no disk"`
		if !strings.HasSuffix(lines[0], want) || strings.Count(strings.Join(lines, "\n"), "Log handler") != 1 {
			t.Errorf("the failure of the log handler must be reported once: %q", lines)
		}
	})
	t.Run("hanging", func(t *testing.T) {
		t.Parallel()
		if code := runLogging(t, "log hangs at the end", io.Discard, "-A"); code != 137 {
			t.Errorf("the last time limit must end the process without waiting for the log: exit code %d", code)
		}
	})
}
