package console_test

import (
	"bytes"
	"encoding/json"
	stdlog "log"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/console"
)

// TestStandardLoggers shows that the loggers of the standard library write lines in the format of the log. They are
// process-wide, so this is one test.
func TestStandardLoggers(t *testing.T) {
	before, flags := slog.Default(), stdlog.Flags()
	defer func() {
		slog.SetDefault(before)
		stdlog.SetOutput(os.Stderr)
		stdlog.SetFlags(flags)
	}()
	stdlog.SetOutput(os.Stderr) // go test -json gives the test another os.Stderr than the logger has
	var out bytes.Buffer
	console.ForwardStandard(console.New(&out, console.Options{Format: console.JSON}))
	stdlog.Printf("http: TLS handshake error from %s: EOF", "10.0.0.1:1234")
	slog.Info("informed", "key", "value")
	slog.Warn("warned")
	slog.Error("failed")
	want := []string{
		"http: TLS handshake error from 10.0.0.1:1234: EOF info", "informed info", "warned warn", "failed error",
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != len(want) {
		t.Fatalf("got %d lines, want %d: %s", len(lines), len(want), out.String())
	}
	for i, line := range lines {
		var shown struct{ Message, Severity string }
		if err := json.Unmarshal([]byte(line), &shown); err != nil {
			t.Errorf("not a line of JSON: %s: %v", line, err)
		}
		if got := shown.Message + " " + shown.Severity; got != want[i] {
			t.Errorf("got %q, want %q: %s", got, want[i], line)
		}
	}

	slog.SetDefault(before)
	var own bytes.Buffer
	stdlog.SetOutput(&own)
	console.ForwardStandard(console.New(&out, console.Options{Format: console.JSON}))
	stdlog.Print("kept")
	if !strings.Contains(own.String(), "kept") {
		t.Error("a logger that the program has set up was replaced")
	}
}
