package posting_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/posting"
	levels "github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
)

var (
	_ handlers.Poster = (*posting.Poster)(nil)
	_ handlers.Poster = posting.LinePoster{}
)

// told are the events that are posted of what a function logs.
func told(t *testing.T, o posting.Options, inner logr.Logger, log func(logr.Logger)) (events []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		poster := posting.New(s, o)
		defer start(t.Context(), t, poster)()
		log(posting.LinePoster{Poster: poster}.Logger(inner, example(), "handler", "fn"))
		synctest.Wait()
		for _, event := range s.all() {
			events = append(events, fmt.Sprintf("%s %s %s: %s", event.InvolvedObject.Name, event.Type, event.Reason,
				event.Message))
		}
	})
	return events
}

func say(log logr.Logger) {
	log.V(1).Info("verbose")
	log.WithName("n").WithValues("known", 1).Info("plain", "key", "value", "number", 2)
	levels.Warn(log, "careful", "key", "value")
	log.Error(errors.New("boo"), "failed")
}

func TestLoggers(t *testing.T) {
	tests := map[string]struct {
		reason  string
		options posting.Options
		want    []string
	}{
		"All": {
			reason:  "what the object, the handler and the call are is said by the event",
			options: posting.Options{Level: slog.LevelDebug},
			want: []string{
				"kex1 Debug Logging: verbose (handler=fn)",
				"kex1 Normal Logging: plain (handler=fn, key=value, number=2)",
				"kex1 Warning Logging: careful (handler=fn, key=value)", "kex1 Error Logging: failed: boo (handler=fn)",
			},
		},
		"Warnings": {
			reason:  "only those of the level and above",
			options: posting.Options{Level: slog.LevelWarn},
			want: []string{
				"kex1 Warning Logging: careful (handler=fn, key=value)", "kex1 Error Logging: failed: boo (handler=fn)",
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := told(t, tc.options, funcr.New(func(_, _ string) {}, funcr.Options{}), say)
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

// Nothing of the log is another one because of the events.
func TestLoggersLeaveTheLogAlone(t *testing.T) {
	for name, logger := range map[string]func(*bytes.Buffer) logr.Logger{
		"Slog": func(to *bytes.Buffer) logr.Logger {
			return logr.FromSlogHandler(slog.NewJSONHandler(to, &slog.HandlerOptions{AddSource: true}))
		},
		"Funcr": func(to *bytes.Buffer) logr.Logger {
			return funcr.NewJSON(func(line string) { to.WriteString(line + "\n") }, funcr.Options{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			var without, with bytes.Buffer
			all := func(log logr.Logger) {
				say(log)
				handler := slog.New(logr.ToSlogHandler(log))
				handler.With("more", 1).Warn("by slog", "key", "value")
			}
			all(logger(&without))
			if events := told(t, posting.Options{}, logger(&with), all); len(events) != 4 {
				t.Errorf("got events: %q", events)
			}
			if d := cmp.Diff(plain(t, without.String()), plain(t, with.String())); d != "" {
				t.Errorf("-without, +with:\n%s", d)
			}
		})
	}
}

// plain are the lines without their times.
func plain(t *testing.T, text string) (lines []map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		delete(fields, "time")
		lines = append(lines, fields)
	}
	return lines
}

// A logger that comes from a logger with events has one event for a line, that of the last object.
func TestLoggersOfLoggers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		poster := posting.New(s, posting.Options{})
		defer start(t.Context(), t, poster)()
		lines := posting.LinePoster{Poster: poster}
		log := lines.Logger(funcr.New(func(_, _ string) {}, funcr.Options{}), example())
		lines.Logger(log.WithValues("a", 1), named("kex2")).Info("m")
		synctest.Wait()
		if got := s.all(); len(got) != 1 || got[0].InvolvedObject.Name != "kex2" {
			t.Errorf("got %v", got)
		}
	})
}
