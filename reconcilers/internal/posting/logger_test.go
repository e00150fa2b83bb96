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

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	levels "github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/posting"
)

var (
	_ handlers.EventPoster = (*posting.QueuePoster)(nil)
	_ handlers.EventPoster = posting.LinePoster{}
)

// postedEvents returns the events that are posted for the lines that a function logs.
func postedEvents(t *testing.T, o posting.Options, inner logr.Logger, log func(logr.Logger)) (events []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		poster := posting.New(s, o)
		defer startPoster(t.Context(), t, poster)()
		log(posting.LinePoster{QueuePoster: poster}.Logger(inner, example(), "handler", "fn"))
		synctest.Wait()
		for _, event := range s.all() {
			events = append(events, fmt.Sprintf("%s %s %s: %s", event.InvolvedObject.Name, event.Type, event.Reason,
				event.Message))
		}
	})
	return events
}

func logSampleLines(log logr.Logger) {
	log.V(1).Info("verbose")
	log.WithName("n").WithValues("known", 1).Info("plain", "key", "value", "number", 2)
	levels.Warn(log, "careful", "key", "value")
	log.Error(errors.New("boo"), "failed")
}

// TestLoggers shows the events for log lines of all levels, and the limit by level.
func TestLoggers(t *testing.T) {
	tests := map[string]struct {
		reason  string
		options posting.Options
		want    []string
	}{
		"All": {
			reason:  "an event omits fields of the object, the handler and the call that it has anyway",
			options: posting.Options{Level: slog.LevelDebug},
			want: []string{
				"kex1 Debug Logging: verbose (handler=fn)",
				"kex1 Normal Logging: plain (handler=fn, key=value, number=2)",
				"kex1 Warning Logging: careful (handler=fn, key=value)", "kex1 Error Logging: failed: boo (handler=fn)",
			},
		},
		"Warnings": {
			reason:  "lines below the level are not posted",
			options: posting.Options{Level: slog.LevelWarn},
			want: []string{
				"kex1 Warning Logging: careful (handler=fn, key=value)", "kex1 Error Logging: failed: boo (handler=fn)",
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := postedEvents(t, tc.options, funcr.New(func(_, _ string) {}, funcr.Options{}), logSampleLines)
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

// TestLoggersLeaveTheLogAlone shows that posting does not change the log.
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
				logSampleLines(log)
				handler := slog.New(logr.ToSlogHandler(log))
				handler.With("more", 1).Warn("by slog", "key", "value")
			}
			all(logger(&without))
			if events := postedEvents(t, posting.Options{}, logger(&with), all); len(events) != 4 {
				t.Errorf("want four events, got %q", events)
			}
			if d := cmp.Diff(linesWithoutTime(t, without.String()), linesWithoutTime(t, with.String())); d != "" {
				t.Errorf("-without, +with:\n%s", d)
			}
		})
	}
}

// linesWithoutTime returns the lines without their times.
func linesWithoutTime(t *testing.T, text string) (lines []map[string]any) {
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

// TestLoggersOfLoggers shows that a logger derived from one with events posts a single event per line, for the last
// object.
func TestLoggersOfLoggers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		poster := posting.New(s, posting.Options{})
		defer startPoster(t.Context(), t, poster)()
		lines := posting.LinePoster{QueuePoster: poster}
		log := lines.Logger(funcr.New(func(_, _ string) {}, funcr.Options{}), example())
		lines.Logger(log.WithValues("a", 1), objectNamed("kex2")).Info("m")
		synctest.Wait()
		if got := s.all(); len(got) != 1 || got[0].InvolvedObject.Name != "kex2" {
			t.Errorf("got %v", got)
		}
	})
}

// TestLoggersOfLoggersKeepTheirPlace shows that a logger around a logger reports the place of the call, and that an
// event has all attributes.
func TestLoggersOfLoggersKeepTheirPlace(t *testing.T) {
	var to bytes.Buffer
	inner := logr.FromSlogHandler(slog.NewJSONHandler(&to, &slog.HandlerOptions{AddSource: true}))
	events := postedEvents(t, posting.Options{}, inner, func(log logr.Logger) {
		synctest.Wait()
		again := posting.LinePoster{QueuePoster: posting.New(&server{}, posting.Options{})}.Logger(log, example())
		again.Info("inner")
		logForCaller(again)
		slog.New(logr.ToSlogHandler(log)).Warn("several", "a", 1, "b", 2)
		log.Info("odd", "key")
	})
	for _, line := range linesWithoutTime(t, to.String()) {
		place, _ := line["source"].(map[string]any)
		if function := fmt.Sprint(place["function"]); !strings.Contains(function, t.Name()) {
			t.Errorf("the line is attributed to %s: %v", function, line)
		}
	}
	want := []string{"kex1 Warning Logging: several (handler=fn, a=1, b=2)", "kex1 Normal Logging: odd (handler=fn)"}
	if d := cmp.Diff(want, events); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
}

// logForCaller logs on behalf of its caller.
func logForCaller(log logr.Logger) { log.WithCallDepth(1).Info("on behalf of others") }

// TestLinesWithoutDetails shows that a line without details becomes its message, and that a silent poster accepts
// nothing.
func TestLinesWithoutDetails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, counts := &server{}, map[posting.EventOutcome]int{}
		poster := posting.New(s, posting.Options{Count: func(what posting.EventOutcome) { counts[what]++ }})
		stop := startPoster(t.Context(), t, poster)
		silent := funcr.New(func(_, _ string) {}, funcr.Options{})
		posting.LinePoster{QueuePoster: poster}.Logger(silent, example()).Info("m")
		synctest.Wait()
		stop()
		got, want := s.messages(), map[posting.EventOutcome]int{posting.Posted: 1}
		if !cmp.Equal([]string{"m"}, got) || !cmp.Equal(want, counts) {
			t.Errorf("want one message without details, got %q, counted %v", got, counts)
		}
	})
	if (posting.Silent{}).Takes(slog.LevelError) {
		t.Error("a silent poster accepts events")
	}
}
