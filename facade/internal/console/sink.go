package console

import (
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

// sink passes what is logged by logr, or by log/slog on top of it, on to a handler, with warnings, which logr alone
// does not have. It asks who logs: what controller-runtime and client-go say of themselves is no matter of a program.
type sink struct {
	lines slog.Handler
	name  string
	depth int // of functions that are not the one who logs
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
	wanted := slog.Level(-level)
	if wanted < slog.LevelInfo && !s.lines.Enabled(context.Background(), wanted) {
		return // whoever logs it: of infos, some are warnings
	}
	who := caller()
	s.log(who.level(wanted, message), nil, message, who.readable(keysAndValues))
}

// Error logs an error, which is nil for those who have none.
func (s *sink) Error(err error, message string, keysAndValues ...any) {
	s.log(slog.LevelError, err, message, keysAndValues)
}

func (s *sink) log(level slog.Level, err error, message string, keysAndValues []any) {
	ctx := context.Background()
	if !s.lines.Enabled(ctx, level) {
		return
	}
	var callers [1]uintptr
	runtime.Callers(3+s.depth, callers[:]) // without this function, the one before, and runtime.Callers
	record := slog.NewRecord(time.Now(), level, message, callers[0])
	if s.name != "" {
		record.AddAttrs(slog.String(loggerKey, s.name))
	}
	record.AddAttrs(attributes(keysAndValues)...)
	if err != nil {
		record.AddAttrs(slog.Any(errorKey, err))
	}
	_ = s.lines.Handle(ctx, record) // there is nobody to tell that nobody can be told
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

// WithValues gives a sink with more values in each line.
func (s *sink) WithValues(keysAndValues ...any) logr.LogSink {
	return s.with(s.lines.WithAttrs(attributes(keysAndValues)))
}

// WithAttrs is WithValues for log/slog.
func (s *sink) WithAttrs(attrs []slog.Attr) logr.SlogSink { return s.with(s.lines.WithAttrs(attrs)) }

// WithGroup is for log/slog: what follows is in the group.
func (s *sink) WithGroup(name string) logr.SlogSink { return s.with(s.lines.WithGroup(name)) }

func (s *sink) with(lines slog.Handler) *sink {
	return &sink{lines: lines, name: s.name, depth: s.depth}
}

// WithName gives a sink of which the logger has a further part in its name.
func (s *sink) WithName(name string) logr.LogSink {
	if s.name != "" {
		name = s.name + "." + name
	}
	return &sink{lines: s.lines, name: name, depth: s.depth}
}

// WithCallDepth gives a sink for functions that log for others.
func (s *sink) WithCallDepth(depth int) logr.LogSink {
	return &sink{lines: s.lines, name: s.name, depth: s.depth + depth}
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
