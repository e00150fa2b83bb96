package posting

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/go-logr/logr"
)

// lineReason is the reason of events that are made of log lines, as in Kopf.
const lineReason = "Logging"

// LinePoster is a poster that can also post log lines. It is a separate type because replacing the logger costs time in
// each call of a handler, which operators without this setting should not pay.
type LinePoster struct{ *QueuePoster }

// Logger returns a logger whose lines are also posted as events about the object. The message of an event consists of
// the line, its error, and the keys and values of the call, after the extra values, which the log line already has. The
// type is Debug, Normal, Warning, Error or Fatal, depending on the level.
func (p LinePoster) Logger(log logr.Logger, body map[string]any, told ...any) logr.Logger {
	// A logger that already posts must not post each line twice.
	log = withoutPosting(log)
	if log.GetSink() == nil {
		return log
	}
	inner := log.GetSink()
	if deep, ok := inner.(logr.CallDepthLogSink); ok {
		inner = deep.WithCallDepth(1)
	}
	return log.WithSink(&sink{inner: inner, lines: &lines{poster: p.QueuePoster, body: body, extraValues: told}})
}

// withoutPosting returns the logger without posting, if it posts lines.
func withoutPosting(log logr.Logger) logr.Logger {
	posting, ok := log.GetSink().(*sink)
	if !ok {
		return log
	}
	inner := posting.inner
	// The additional depth belongs to the sink that is removed here.
	if deep, ok := inner.(logr.CallDepthLogSink); ok {
		inner = deep.WithCallDepth(-1)
	}
	return log.WithSink(inner)
}

// lines turns log lines about one object into events.
type lines struct {
	poster      *QueuePoster
	body        map[string]any
	extraValues []any
}

// postLine posts a line if its level is high enough.
func (l *lines) postLine(level slog.Level, message string, err error, keysAndValues ...any) {
	if !l.poster.Takes(level) {
		return
	}
	if err != nil {
		message += ": " + err.Error()
	}
	var details []string
	// Limit the capacity, so that append copies and concurrent calls do not share the array.
	keysAndValues = append(l.extraValues[:len(l.extraValues):len(l.extraValues)], keysAndValues...)
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		details = append(details, fmt.Sprintf("%v=%v", keysAndValues[i], keysAndValues[i+1]))
	}
	if len(details) > 0 {
		message += " (" + strings.Join(details, ", ") + ")"
	}
	l.poster.Post(context.Background(), l.body, eventTypeOf(level), lineReason, message)
}

// eventTypeOf returns the type of an event for a log level, as in Kopf.
func eventTypeOf(level slog.Level) string {
	switch {
	case level <= slog.LevelDebug:
		return "Debug"
	case level <= slog.LevelInfo:
		return "Normal"
	case level <= slog.LevelWarn:
		return "Warning"
	case level <= slog.LevelError:
		return "Error"
	default:
		return "Fatal"
	}
}

// sink passes log lines on to the inner sink unchanged, and posts them as events. It implements logr.SlogSink because
// logr has no warnings: only log/slog levels distinguish them.
type sink struct {
	inner logr.LogSink
	lines *lines
}

var (
	_ logr.CallDepthLogSink = (*sink)(nil)
	_ logr.SlogSink         = (*sink)(nil)
)

// Init does nothing, because the inner sink is already initialized.
func (*sink) Init(logr.RuntimeInfo) {}

// Enabled reports whether lines of this verbosity are logged or posted.
func (s *sink) Enabled(verbosity int) bool {
	return s.inner.Enabled(verbosity) || s.lines.poster.Takes(levelOf(verbosity))
}

// Info implements logr.LogSink.
func (s *sink) Info(verbosity int, message string, keysAndValues ...any) {
	if s.inner.Enabled(verbosity) {
		s.inner.Info(verbosity, message, keysAndValues...)
	}
	s.lines.postLine(levelOf(verbosity), message, nil, keysAndValues...)
}

// Error implements logr.LogSink.
func (s *sink) Error(err error, message string, keysAndValues ...any) {
	s.inner.Error(err, message, keysAndValues...)
	s.lines.postLine(slog.LevelError, message, err, keysAndValues...)
}

// WithValues implements logr.LogSink.
func (s *sink) WithValues(keysAndValues ...any) logr.LogSink {
	return &sink{s.inner.WithValues(keysAndValues...), s.lines}
}

// WithName implements logr.LogSink.
func (s *sink) WithName(name string) logr.LogSink { return &sink{s.inner.WithName(name), s.lines} }

// WithCallDepth implements logr.CallDepthLogSink.
func (s *sink) WithCallDepth(depth int) logr.LogSink {
	if deep, ok := s.inner.(logr.CallDepthLogSink); ok {
		return &sink{deep.WithCallDepth(depth), s.lines}
	}
	return s
}

// Handle implements logr.SlogSink.
func (s *sink) Handle(ctx context.Context, record slog.Record) error {
	var keysAndValues []any
	record.Attrs(func(a slog.Attr) bool {
		keysAndValues = append(keysAndValues, a.Key, a.Value.Resolve().Any())
		return true
	})
	s.lines.postLine(record.Level, record.Message, nil, keysAndValues...)
	if handler := s.slogHandler(); handler.Enabled(ctx, record.Level) {
		return handler.Handle(ctx, record)
	}
	return nil
}

// WithAttrs implements logr.SlogSink.
func (s *sink) WithAttrs(attrs []slog.Attr) logr.SlogSink {
	return &sink{logr.FromSlogHandler(s.slogHandler().WithAttrs(attrs)).GetSink(), s.lines}
}

// WithGroup implements logr.SlogSink.
func (s *sink) WithGroup(name string) logr.SlogSink {
	return &sink{logr.FromSlogHandler(s.slogHandler().WithGroup(name)).GetSink(), s.lines}
}

// slogHandler returns the inner sink as a slog handler.
func (s *sink) slogHandler() slog.Handler { return logr.ToSlogHandler(logr.Logger{}.WithSink(s.inner)) }

// levelOf returns the slog level of a verbosity. Every verbosity above zero counts as Debug.
func levelOf(verbosity int) slog.Level {
	if verbosity > 0 {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}
