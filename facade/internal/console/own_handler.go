package console

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/go-logr/logr"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
)

// ownHandler is between a logger and a handler of the program. Whatever that handler does, it is no matter of who logs:
// its panics and errors go no further.
type ownHandler struct {
	to        slog.Handler
	verbosity Verbosity
	failures  *failures
}

var _ slog.Handler = (*ownHandler)(nil)

// failures are those of the handler and of all that were derived from it. The first one is told, as nobody would know
// otherwise that lines are missing; after that, one would come with each line.
type failures struct {
	once sync.Once
	log  logr.Logger // not that of the handler
}

func (f *failures) tell(err error) {
	f.once.Do(func() {
		f.log.Error(err, "Log handler of the program failed; lines of the log may be missing; logged once",
			panics.Stack(err)...)
	})
}

// contain calls a method of the handler. It returns false if the method has failed.
func (h *ownHandler) contain(call func() error) bool {
	err := panics.Contain(call)
	if err != nil {
		h.failures.tell(err)
	}
	return err == nil
}

// Enabled asks the handler, unless the flags have decided.
func (h *ownHandler) Enabled(ctx context.Context, level slog.Level) bool {
	switch {
	case h.verbosity == Quiet && level < slog.LevelWarn:
		return false
	case h.verbosity != Debug && level <= ofLibraries(slog.LevelInfo):
		return false
	}
	level = known(level)
	enabled := level >= slog.LevelInfo // of a handler that cannot be asked
	h.contain(func() error { enabled = h.to.Enabled(ctx, level); return nil })
	return enabled
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
	h.contain(func() error { return h.to.Handle(ctx, record) })
	return nil
}

// WithAttrs passes values on.
func (h *ownHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.derived(func() slog.Handler { return h.to.WithAttrs(attrs) })
}

// WithGroup passes a group on.
func (h *ownHandler) WithGroup(name string) slog.Handler {
	return h.derived(func() slog.Handler { return h.to.WithGroup(name) })
}

var errNoHandler = errors.New("its WithAttrs or WithGroup returned nil")

// derived is as the handler says; or the same again, if it says nothing of use.
func (h *ownHandler) derived(derive func() slog.Handler) slog.Handler {
	own := *h
	h.contain(func() error {
		to := derive()
		if to == nil {
			return errNoHandler
		}
		own.to = to
		return nil
	})
	return &own
}
