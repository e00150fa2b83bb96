package console

import (
	"context"
	"errors"
	"log/slog"

	"github.com/kopf-runtime/kopf-runtime/internal/panics"
)

// userHandler passes records to a handler of the program. Panics and errors of that handler do not reach the code that
// logs.
type userHandler struct {
	handler   slog.Handler
	verbosity Verbosity
	// logFailure logs the first failure of the handler and of all handlers derived from it. Without it, missing lines
	// would go unnoticed; more of them could come with each line.
	logFailure func(error)
}

var _ slog.Handler = (*userHandler)(nil)

// containFailure calls a method of the handler. It returns false if the method fails or panics.
func (h *userHandler) containFailure(call func() error) bool {
	err := panics.Contain(call)
	if err != nil {
		h.logFailure(err)
	}
	return err == nil
}

// Enabled returns the decision of the handler, unless the verbosity excludes the level.
func (h *userHandler) Enabled(ctx context.Context, level slog.Level) bool {
	switch {
	case h.verbosity == Quiet && level < slog.LevelWarn:
		return false
	case h.verbosity != Debug && level <= libraryOffset:
		return false
	}
	level = slogLevel(level)
	enabled := level >= slog.LevelInfo // the default for a handler that fails
	h.containFailure(func() error { enabled = h.handler.Enabled(ctx, level); return nil })
	return enabled
}

// slogLevel maps all levels below Info to Debug: logr has any number of them, log/slog only one.
func slogLevel(level slog.Level) slog.Level {
	if level < slog.LevelInfo {
		return slog.LevelDebug
	}
	return level
}

// Handle passes a record to the handler. Its error is contained, so it returns nil.
func (h *userHandler) Handle(ctx context.Context, record slog.Record) error {
	record.Level = slogLevel(record.Level)
	h.containFailure(func() error { return h.handler.Handle(ctx, record) })
	return nil
}

// WithAttrs passes values to the handler.
func (h *userHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.deriveHandler(func() slog.Handler { return h.handler.WithAttrs(attrs) })
}

// WithGroup passes a group to the handler.
func (h *userHandler) WithGroup(name string) slog.Handler {
	return h.deriveHandler(func() slog.Handler { return h.handler.WithGroup(name) })
}

var errNoHandler = errors.New("its WithAttrs or WithGroup returned nil")

// deriveHandler returns the derived handler, or a copy of the current one if the derivation fails. Its values are
// missing then, but lines are still logged.
func (h *userHandler) deriveHandler(derive func() slog.Handler) slog.Handler {
	// The receiver is shared by other loggers.
	own := *h
	h.containFailure(func() error {
		to := derive()
		if to == nil {
			return errNoHandler
		}
		own.handler = to
		return nil
	})
	return &own
}
