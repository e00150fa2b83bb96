package console

import (
	"context"
	"log/slog"
)

// ownHandler is between a logger and a handler of the program.
type ownHandler struct {
	to        slog.Handler
	verbosity Verbosity
}

var _ slog.Handler = (*ownHandler)(nil)

// Enabled asks the handler, unless the flags have decided.
func (h *ownHandler) Enabled(ctx context.Context, level slog.Level) bool {
	switch {
	case h.verbosity == Quiet && level < slog.LevelWarn:
		return false
	case h.verbosity != Debug && level <= ofLibraries(slog.LevelInfo):
		return false
	}
	return h.to.Enabled(ctx, known(level))
}

// known is the level by its usual name: log/slog has one below Info, logr has any number.
func known(level slog.Level) slog.Level {
	if level < slog.LevelInfo {
		return slog.LevelDebug
	}
	return level
}

// Handle passes a record on.
func (h *ownHandler) Handle(ctx context.Context, record slog.Record) error {
	record.Level = known(record.Level)
	return h.to.Handle(ctx, record)
}

// WithAttrs passes values on.
func (h *ownHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &ownHandler{to: h.to.WithAttrs(attrs), verbosity: h.verbosity}
}

// WithGroup passes a group on.
func (h *ownHandler) WithGroup(name string) slog.Handler {
	return &ownHandler{to: h.to.WithGroup(name), verbosity: h.verbosity}
}
