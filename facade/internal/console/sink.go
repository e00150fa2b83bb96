package console

import (
	"cmp"
	"context"
	"log/slog"
	"runtime"
	"time"

	"github.com/go-logr/logr"
)

// These are the keys that a logger itself adds to a record.
const (
	loggerKey = "logger"
	errorKey  = "error"
)

// sink passes lines of logr and log/slog to a handler. It adds warnings, which logr does not have, and lowers the level
// of messages that controller-runtime and client-go log about themselves. Logr's verbosities become levels of log/slog:
// V(0) is Info, V(1) and above are below it.
//
// It recognizes the libraries by the function that logs, not by the logger: client-go takes loggers from contexts, and
// finds the logger of the handled object there.
type sink struct {
	handler slog.Handler
	name    string
	depth   int    // number of frames between the caller and the sink
	origin  origin // origin of all lines; empty means the calling function
}

var (
	_ logr.CallDepthLogSink = (*sink)(nil)
	_ logr.SlogSink         = (*sink)(nil)
)

// Init adds the frames of the logger's own functions.
func (s *sink) Init(info logr.RuntimeInfo) { s.depth += info.CallDepth }

// Enabled reports whether lines of a logr verbosity can be logged. For infos, it returns true if warnings are logged:
// whether an info is a warning depends on its message.
func (s *sink) Enabled(level int) bool {
	lowest := slog.Level(-level)
	if level == 0 {
		lowest = slog.LevelWarn
	}
	return s.handler.Enabled(context.Background(), lowest)
}

// Info logs at the level that the message has in this program.
func (s *sink) Info(level int, message string, keysAndValues ...any) {
	s.logRecord(slog.Level(-level), nil, message, keysAndValues)
}

// Error logs an error, which may be nil.
func (s *sink) Error(err error, message string, keysAndValues ...any) {
	s.logRecord(slog.LevelError, err, message, keysAndValues)
}

// logRecord determines the origin and the level, and passes the record to the handler.
func (s *sink) logRecord(level slog.Level, err error, message string, keysAndValues []any) {
	ctx := context.Background()
	if level < slog.LevelInfo && !s.handler.Enabled(ctx, level) {
		return // for any origin: only infos can be warnings
	}
	// The frames between the caller and this function are skipped, including those of wrappers.
	var callers [1]uintptr
	runtime.Callers(3+s.depth, callers[:]) // skips runtime.Callers, log, and Info or Error
	// Errors keep their level and values, whatever logs them.
	if level < slog.LevelError {
		who := cmp.Or(s.origin, originOf(callers[0]))
		level, keysAndValues = who.programLevel(level, message), who.readableValues(keysAndValues)
	}
	if !s.handler.Enabled(ctx, level) {
		return
	}
	record := slog.NewRecord(time.Now(), level, message, callers[0])
	if s.name != "" {
		record.AddAttrs(slog.String(loggerKey, s.name))
	}
	record.AddAttrs(toAttributes(keysAndValues)...)
	if err != nil {
		record.AddAttrs(slog.Any(errorKey, err))
	}
	_ = s.handler.Handle(ctx, record) // a failure to log cannot be logged
}

// Handle passes a record of log/slog to the handler.
func (s *sink) Handle(ctx context.Context, record slog.Record) error {
	if !s.handler.Enabled(ctx, record.Level) {
		return nil
	}
	// A record cannot be prefixed, so a new one begins with the logger's name.
	named := slog.NewRecord(record.Time, record.Level, record.Message, record.PC)
	if s.name != "" {
		named.AddAttrs(slog.String(loggerKey, s.name))
	}
	record.Attrs(func(a slog.Attr) bool {
		named.AddAttrs(a)
		return true
	})
	return s.handler.Handle(ctx, named)
}

// WithValues returns a sink with more values in each line.
func (s *sink) WithValues(keysAndValues ...any) logr.LogSink {
	return s.withHandler(s.handler.WithAttrs(toAttributes(keysAndValues)))
}

// WithAttrs is WithValues for log/slog.
func (s *sink) WithAttrs(attrs []slog.Attr) logr.SlogSink {
	return s.withHandler(s.handler.WithAttrs(attrs))
}

// WithGroup is for log/slog: further values are in the group.
func (s *sink) WithGroup(name string) logr.SlogSink { return s.withHandler(s.handler.WithGroup(name)) }

// withHandler returns a sink with another handler.
func (s *sink) withHandler(lines slog.Handler) *sink {
	return s.modifiedCopy(func(derived *sink) { derived.handler = lines })
}

// WithName returns a sink with one more part in the name of the logger.
func (s *sink) WithName(name string) logr.LogSink {
	if s.name != "" {
		name = s.name + "." + name
	}
	return s.modifiedCopy(func(derived *sink) { derived.name = name })
}

// WithCallDepth returns a sink for functions that log on behalf of their callers.
func (s *sink) WithCallDepth(depth int) logr.LogSink {
	return s.modifiedCopy(func(derived *sink) { derived.depth += depth })
}

// modifiedCopy returns a changed copy: sinks are shared and must not be modified.
func (s *sink) modifiedCopy(change func(derived *sink)) *sink {
	derived := *s
	change(&derived)
	return &derived
}

// toAttributes converts the pairs of logr to attributes of log/slog. A key that is not a string, or a key without a
// value, is marked and logged as well.
func toAttributes(keysAndValues []any) []slog.Attr {
	var all []slog.Attr
	for i := 0; i < len(keysAndValues); i += 2 {
		key, isText := keysAndValues[i].(string)
		// Logr leaves such mistakes of callers to the sink. The text must not be lost.
		if !isText || i+1 == len(keysAndValues) {
			all = append(all, slog.Any("!BADKEY", valueText(keysAndValues[i])))
			if isText {
				continue
			}
			key = "!BADVALUE"
		}
		if i+1 < len(keysAndValues) {
			all = append(all, slog.Any(key, logRepresentation(keysAndValues[i+1])))
		}
	}
	return all
}
