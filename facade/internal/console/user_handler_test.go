package console_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/console"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
)

// ownText returns a program's handler that writes text without times.
func ownText(out *bytes.Buffer, level slog.Level) slog.Handler {
	return slog.NewTextHandler(out, &slog.HandlerOptions{
		Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})
}

// TestOwnHandlerIsServed shows the levels, values and groups that a program's handler receives.
func TestOwnHandlerIsServed(t *testing.T) {
	const debug, info, warn, failure = "level=DEBUG msg=debug\n", "level=INFO msg=info\n", "level=WARN msg=warn\n",
		"level=ERROR msg=error error=boo\n"
	levels := func(log logr.Logger) {
		log.V(1).Info("debug")
		log.Info("info")
		logging.Warn(log, "warn")
		log.Error(errors.New("boo"), "error")
	}
	cases := map[string]struct {
		reason       string
		handlerLevel slog.Level
		verbosity    console.Verbosity
		log          func(log logr.Logger)
		want         string
	}{
		"its level": {"the level of the handler decides", slog.LevelWarn, console.Normal, levels, warn + failure},
		"lowest level": {"the default verbosity hides nothing from the handler",
			slog.LevelDebug, console.Normal, levels,
			debug + info + warn + failure},
		"verbose": {"a verbose flag does not lower the level of the handler",
			slog.LevelInfo, console.Debug, levels, info + warn + failure},
		"quiet": {"the quiet flag hides information from the handler",
			slog.LevelDebug, console.Quiet, levels, warn + failure},
		"levels of logr": {"a high level of logr becomes the debug level", slog.LevelDebug, console.Normal,
			func(log logr.Logger) { log.V(3).Info("debug") }, debug},
		"values": {"values of the logger and of the line are passed", slog.LevelInfo, console.Normal,
			func(log logr.Logger) { log.WithName("op").WithValues("uid", "u1").Info("info", "n", 1) },
			"level=INFO msg=info uid=u1 logger=op n=1\n"},
		"groups": {"groups of log/slog are passed", slog.LevelInfo, console.Normal,
			func(log logr.Logger) {
				slog.New(logr.ToSlogHandler(log.WithValues("uid", "u1"))).WithGroup("disk").With("free", 1).
					Info("info", slog.Group("of", "all", 2))
			},
			"level=INFO msg=info uid=u1 disk.free=1 disk.of.all=2\n"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			c.log(console.NewForHandler(ownText(&out, c.handlerLevel), &errs, console.Options{Verbosity: c.verbosity}))
			if d := cmp.Diff(c.want, out.String()+errs.String()); d != "" {
				t.Errorf("%s\n-want, +got:\n%s", c.reason, d)
			}
		})
	}
}

// faultyHandler is a handler with one failing method.
type faultyHandler struct {
	method string
	fault  func() error
	lines  *[]string
	attrs  []string
}

func (f *faultyHandler) fail(method string) error {
	if f.method == method {
		return f.fault()
	}
	return nil
}

func (f *faultyHandler) Enabled(context.Context, slog.Level) bool { return f.fail("Enabled") == nil }

func (f *faultyHandler) Handle(_ context.Context, record slog.Record) error {
	*f.lines = append(*f.lines, strings.Join(append(slices.Clip(f.attrs), record.Message), " "))
	return f.fail("Handle")
}

func (f *faultyHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return f.with("WithAttrs", attrs[0].Key)
}

func (f *faultyHandler) WithGroup(name string) slog.Handler { return f.with("WithGroup", name) }

func (f *faultyHandler) with(method, key string) slog.Handler {
	if f.fail(method) != nil {
		return nil
	}
	derived := *f
	derived.attrs = append(slices.Clip(f.attrs), key)
	return &derived
}

// TestOwnHandlerThatFails shows that a failing or panicking handler does not stop the caller, and that the failure is
// logged once.
func TestOwnHandlerThatFails(t *testing.T) {
	panicking := func() error { panic("no disk") }
	failing := func() error { return errors.New("no disk") }
	cases := map[string]struct {
		reason string
		method string
		fault  func() error
		want   []string
	}{
		"Handle panics": {"each line is tried after a panic of Handle",
			"Handle", panicking, []string{"a g one", "a g two"}},
		"Handle fails": {"each line is tried after an error of Handle",
			"Handle", failing, []string{"a g one", "a g two"}},
		"Enabled panics": {"a panic of Enabled loses no lines", "Enabled", panicking, []string{"a g one", "a g two"}},
		"WithAttrs panics": {"a panic of WithAttrs loses the values, but not the line", "WithAttrs", panicking,
			[]string{"g one", "g two"}},
		"no WithAttrs": {"a nil handler of WithAttrs loses the values, but not the line",
			"WithAttrs", failing, []string{"g one", "g two"}},
		"no WithGroup": {"a nil handler of WithGroup loses the group, but not the line",
			"WithGroup", failing, []string{"a one", "a two"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var lines []string
			var errs bytes.Buffer
			own := &faultyHandler{method: c.method, fault: c.fault, lines: &lines}
			options := console.Options{Operator: "op", Format: console.Plain}
			log := slog.New(logr.ToSlogHandler(console.NewForHandler(own, &errs, options)))
			for _, message := range []string{"one", "two"} {
				log.With("a", 1).WithGroup("g").Info(message)
			}
			if d := cmp.Diff(c.want, lines); d != "" {
				t.Errorf("%s\n-want, +got:\n%s", c.reason, d)
			}
			const told = "Log handler of the program failed; lines of the log may be missing; logged once error="
			if n := strings.Count(errs.String(), "Log handler"); n != 1 || !strings.HasPrefix(errs.String(), told) {
				t.Errorf("logged %d times: %s", n, errs.String())
			}
		})
	}
}
