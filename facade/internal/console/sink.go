package console

import (
	"cmp"
	"context"
	"log/slog"
	"runtime"
	"time"

	"github.com/go-logr/logr"
)

// These are the keys of what a logger itself adds to a record.
const (
	loggerKey = "logger"
	errorKey  = "error"
)

// sink passes lines of logr, and of log/slog on top of it, to a handler. It adds warnings, which logr does not have,
// and lowers the level of lines that controller-runtime and client-go log about themselves.
//
// It recognizes these lines by the function that logs, not by the logger: client-go takes loggers from contexts, where
// it finds the logger of the handled object.
type sink struct {
	lines  slog.Handler
	name   string
	depth  int    // of functions that log for others
	origin origin // of all lines; empty is the function that logs
}

var (
	_ logr.CallDepthLogSink = (*sink)(nil)
	_ logr.SlogSink         = (*sink)(nil)
)

// Init tells how deep the logger's own functions are.
func (s *sink) Init(info logr.RuntimeInfo) { s.depth += info.CallDepth }

// Enabled is asked for infos by those who have warnings, too: which of them it is, shows in the record.
func (s *sink) Enabled(level int) bool {
	lowest := slog.Level(-level)
	if level == 0 {
		lowest = slog.LevelWarn
	}
	return s.lines.Enabled(context.Background(), lowest)
}

// Info logs at the level that the message has for this program.
func (s *sink) Info(level int, message string, keysAndValues ...any) {
	s.log(slog.Level(-level), nil, message, keysAndValues)
}

// Error logs an error, which may be nil.
func (s *sink) Error(err error, message string, keysAndValues ...any) {
	s.log(slog.LevelError, err, message, keysAndValues)
}

func (s *sink) log(level slog.Level, err error, message string, keysAndValues []any) {
	ctx := context.Background()
	if level < slog.LevelInfo && !s.lines.Enabled(ctx, level) {
		return // regardless of the origin: only infos can be warnings
	}
	var callers [1]uintptr
	runtime.Callers(3+s.depth, callers[:]) // without this function, the one before, and runtime.Callers
	if level < slog.LevelError {
		who := cmp.Or(s.origin, originOf(callers[0]))
		level, keysAndValues = who.level(level, message), who.readable(keysAndValues)
	}
	if !s.lines.Enabled(ctx, level) {
		return
	}
	record := slog.NewRecord(time.Now(), level, message, callers[0])
	if s.name != "" {
		record.AddAttrs(slog.String(loggerKey, s.name))
	}
	record.AddAttrs(attributes(keysAndValues)...)
	if err != nil {
		record.AddAttrs(slog.Any(errorKey, err))
	}
	_ = s.lines.Handle(ctx, record) // a failure to log cannot be logged
}

// Handle takes a record of log/slog.
func (s *sink) Handle(ctx context.Context, record slog.Record) error {
	if !s.lines.Enabled(ctx, record.Level) {
		return nil
	}
	named := slog.NewRecord(record.Time, record.Level, record.Message, record.PC)
	if s.name != "" {
		named.AddAttrs(slog.String(loggerKey, s.name))
	}
	record.Attrs(func(a slog.Attr) bool {
		named.AddAttrs(a)
		return true
	})
	return s.lines.Handle(ctx, named)
}

// WithValues returns a sink with more values in each line.
func (s *sink) WithValues(keysAndValues ...any) logr.LogSink {
	return s.to(s.lines.WithAttrs(attributes(keysAndValues)))
}

// WithAttrs is WithValues for log/slog.
func (s *sink) WithAttrs(attrs []slog.Attr) logr.SlogSink { return s.to(s.lines.WithAttrs(attrs)) }

// WithGroup is for log/slog: further values are in the group.
func (s *sink) WithGroup(name string) logr.SlogSink { return s.to(s.lines.WithGroup(name)) }

func (s *sink) to(lines slog.Handler) *sink {
	return s.with(func(derived *sink) { derived.lines = lines })
}

// WithName returns a sink with one more part in the name of the logger.
func (s *sink) WithName(name string) logr.LogSink {
	if s.name != "" {
		name = s.name + "." + name
	}
	return s.with(func(derived *sink) { derived.name = name })
}

// WithCallDepth returns a sink for functions that log for others.
func (s *sink) WithCallDepth(depth int) logr.LogSink {
	return s.with(func(derived *sink) { derived.depth += depth })
}

// with returns a changed copy.
func (s *sink) with(change func(derived *sink)) *sink {
	derived := *s
	change(&derived)
	return &derived
}

// attributes are the pairs of logr as log/slog has them. What has no text for a key, or no value, is shown all the
// same.
func attributes(keysAndValues []any) []slog.Attr {
	var all []slog.Attr
	for i := 0; i < len(keysAndValues); i += 2 {
		key, isText := keysAndValues[i].(string)
		if !isText || i+1 == len(keysAndValues) {
			all = append(all, slog.Any("!BADKEY", valueText(keysAndValues[i])))
			if isText {
				continue
			}
			key = "!BADVALUE"
		}
		if i+1 < len(keysAndValues) {
			all = append(all, slog.Any(key, marshalled(keysAndValues[i+1])))
		}
	}
	return all
}
