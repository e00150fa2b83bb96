package posting

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
)

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
