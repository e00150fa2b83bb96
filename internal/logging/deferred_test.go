package logging_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/go-logr/zapr"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/kopf-runtime/kopf-runtime/internal/logging"
)

// loggers are the kinds of loggers that users have.
var loggers = map[string]func(out *bytes.Buffer) logr.Logger{
	"funcr": func(out *bytes.Buffer) logr.Logger {
		write := func(prefix, line string) { fmt.Fprintln(out, prefix, line) }
		return funcr.New(write, funcr.Options{LogCaller: funcr.All, Verbosity: 1})
	},
	"log/slog":              func(out *bytes.Buffer) logr.Logger { return text(out, slog.LevelDebug) },
	"log/slog for warnings": func(out *bytes.Buffer) logr.Logger { return text(out, slog.LevelWarn) },
	"log/slog for errors":   func(out *bytes.Buffer) logr.Logger { return text(out, slog.LevelError) },
	"zap": func(out *bytes.Buffer) logr.Logger {
		form := zapcore.EncoderConfig{
			MessageKey: "m", LevelKey: "l", CallerKey: "c", EncodeCaller: zapcore.ShortCallerEncoder,
		}
		core := zapcore.NewCore(zapcore.NewJSONEncoder(form), zapcore.AddSync(out), zapcore.DebugLevel)
		return zapr.NewLogger(zap.New(core, zap.AddCaller()))
	},
	"plain": func(out *bytes.Buffer) logr.Logger {
		sink := funcr.New(func(_, line string) { fmt.Fprintln(out, line) }, funcr.Options{}).GetSink()
		return logr.New(plainSink{sink})
	},
	"nothing": func(*bytes.Buffer) logr.Logger { return logr.Discard() },
	"zero":    func(*bytes.Buffer) logr.Logger { return logr.Logger{} },
}

// plainSink is a sink that supports neither log/slog nor call depths.
type plainSink struct{ logr.LogSink }

// forgetfulSink is a sink that supports log/slog until it gets values or a name.
type forgetfulSink struct{ logr.LogSink }

func (f forgetfulSink) WithValues(values ...any) logr.LogSink {
	return plainSink{f.LogSink.WithValues(values...)}
}

func (f forgetfulSink) WithName(name string) logr.LogSink { return plainSink{f.LogSink.WithName(name)} }

func (f forgetfulSink) Handle(_ context.Context, r slog.Record) error {
	f.Info(0, r.Message)
	return nil
}

func (f forgetfulSink) WithAttrs([]slog.Attr) logr.SlogSink { return f }

func (f forgetfulSink) WithGroup(string) logr.SlogSink { return f }

// TestDeferredLoggersSayTheSame shows that a logger with deferred values writes the same lines, with the same caller,
// as one that formats its values at once.
func TestDeferredLoggersSayTheSame(t *testing.T) {
	for name, of := range loggers {
		t.Run(name, func(t *testing.T) {
			say := func(with func(logr.Logger, ...any) logr.Logger) string {
				var out bytes.Buffer
				log := with(of(&out), "a", 1, "b", 2)
				log.V(1).Info("in detail")
				log.V(2).Info("in more detail")
				for _, log := range []logr.Logger{
					log, with(log, "c", 3), log.WithValues("d", 4), log.WithName("e"), log.WithCallDepth(0), with(log),
					with(log.WithName("f").WithValues("g", 5), "h", 6),
				} {
					for range 2 {
						log.Info("info", "i", 7)
						log.Error(errors.New("error"), "failed", "j", 8)
						logging.Warn(log, "warned", "k", 9)
					}
					func() { log.WithCallDepth(1).Info("called from where it was called") }()
					by := slog.New(logr.ToSlogHandler(log))
					by.Debug("debug")
					by.Info("info")
					by.With("l", 10).Warn("warned", "m", 11)
					by.WithGroup("n").Error("failed", "o", 12)
				}
				return out.String()
			}
			at := func(log logr.Logger, more ...any) logr.Logger { return log.WithValues(more...) }
			if d := cmp.Diff(say(at), say(logging.WithDeferredValues)); d != "" {
				t.Errorf("-at once, +deferred:\n%s", d)
			}
		})
	}
}

// countingSink counts how often values are formatted.
type countingSink struct {
	forgetfulSink
	count *int
}

func (c countingSink) WithValues(keysAndValues ...any) logr.LogSink {
	*c.count++
	return countingSink{forgetfulSink{c.LogSink.WithValues(keysAndValues...)}, c.count}
}

// TestValuesAreFormattedOnce shows that deferred values are formatted with the first line, and only once.
func TestValuesAreFormattedOnce(t *testing.T) {
	formatted := 0
	sink := funcr.New(func(string, string) {}, funcr.Options{}).GetSink()
	of := logr.New(countingSink{forgetfulSink{sink}, &formatted})
	log := logging.WithDeferredValues(logging.WithDeferredValues(logging.DeferAllValues(of), "a", 1), "b",
		2).WithValues("c", 3)
	log.V(1).Info("too detailed")
	if formatted != 0 {
		t.Errorf("values were formatted %d times without a line", formatted)
	}
	var speakers sync.WaitGroup
	for range 4 {
		speakers.Go(func() { log.Info("said") })
	}
	speakers.Wait()
	if formatted != 1 {
		t.Errorf("values were formatted %d times, want once", formatted)
	}
}

// TestValuesAreTheLoggersOwn shows that a caller can reuse its list of values.
func TestValuesAreTheLoggersOwn(t *testing.T) {
	var out bytes.Buffer
	log := loggers["funcr"](&out).WithCallDepth(0)
	values := append(make([]any, 0, 8), "a", 1)
	first := logging.WithDeferredValues(log, values...)
	second := logging.WithDeferredValues(log, append(values, "b", 2)...)
	third := logging.WithDeferredValues(first, "c", 3)
	logging.WithDeferredValues(first, "d", 4).Info("x")
	second.Info("x")
	third.Info("x")
	var said []string
	for line := range strings.Lines(out.String()) {
		_, values, _ := strings.Cut(line, `"msg"="x" `)
		said = append(said, values)
	}
	want := []string{"\"a\"=1 \"d\"=4\n", "\"a\"=1 \"b\"=2\n", "\"a\"=1 \"c\"=3\n"}
	if d := cmp.Diff(want, said); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
}

// TestForgetfulSinks shows that no values are lost if a sink stops supporting log/slog with its first values or name.
func TestForgetfulSinks(t *testing.T) {
	var out bytes.Buffer
	sink := funcr.New(func(_, line string) { fmt.Fprintln(&out, line) }, funcr.Options{}).GetSink()
	log := logging.WithDeferredValues(logr.New(forgetfulSink{sink}), "a", 1)
	log.WithName("n").Info("named")
	log.WithCallDepth(1).Info("deep")
	by := slog.New(logr.ToSlogHandler(log))
	by.Info("info")
	by.With("b", 2).WithGroup("c").Info("info", "d", 3)
	want := `"level"=0 "msg"="named" "a"=1` + "\n" + `"level"=0 "msg"="deep" "a"=1` + "\n" +
		`"level"=0 "msg"="info" "a"=1` + "\n" + `"level"=0 "msg"="info" "a"=1 "b"=2 "d"=3` + "\n"
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
}

// TestValuesOfOthersAreFormattedAtOnce shows that values added by WithValues or Formatted are formatted at once, as
// they may change, and that the sink of the user can be found in the logger.
func TestValuesOfOthersAreFormattedAtOnce(t *testing.T) {
	changing := map[string]int{"n": 1}
	for name, add := range map[string]func(log logr.Logger) logr.Logger{
		"WithValues": func(log logr.Logger) logr.Logger { return log.WithValues("state", changing) },
		"Formatted":  func(log logr.Logger) logr.Logger { return logging.WithFormattedValues(log, "state", changing) },
	} {
		changing["n"] = 1
		var out bytes.Buffer
		log := add(logging.WithDeferredValues(loggers["zap"](&out), "a", 1))
		changing["n"] = 2
		log.Info("said")
		if _, is := log.GetSink().(zapr.Underlier); !is || !strings.Contains(out.String(), `"a":1,"state":{"n":1}`) {
			t.Errorf("%s: found zap: %t, logged %s", name, is, out.String())
		}
	}
	if logging.WithFormattedValues(logr.Discard(), "a", 1).Enabled() ||
		logging.DeferAllValues(logr.Discard()).Enabled() {
		t.Error("a discarding logger is enabled")
	}
}

// panickingSink is a sink that cannot format values.
type panickingSink struct{ forgetfulSink }

func (panickingSink) WithValues(...any) logr.LogSink { panic("cannot format") }

// TestSinksThatPanic shows that a sink that panics while formatting loses its values, but not later lines.
func TestSinksThatPanic(t *testing.T) {
	var out bytes.Buffer
	sink := funcr.New(func(_, line string) { fmt.Fprintln(&out, line) }, funcr.Options{}).GetSink()
	log := logging.WithDeferredValues(logr.New(panickingSink{forgetfulSink{sink}}), "a", 1)
	func() {
		defer func() { _ = recover() }()
		log.Info("first")
	}()
	log.Info("second")
	if out.String() != `"level"=0 "msg"="second"`+"\n" {
		t.Errorf("got %q", out.String())
	}
}
