package facadetest

import (
	"context"
	"strings"

	"github.com/go-logr/logr"
)

// inPlaceMessage is in the lines by which an operator tells of changes in place.
const inPlaceMessage = "andler changed its copy of the object"

// listener passes on what is logged, and hears of changes in place: operators tell of them by the log alone.
type listener struct {
	to   logr.LogSink // nil is nowhere
	lost func(fields []string)
}

var _ logr.LogSink = listener{}

// listening is the context with a logger that is heard. The lines go on to the logger of the context.
func listening(ctx context.Context, r *recorder) context.Context {
	log, err := logr.FromContext(ctx)
	if err != nil {
		log = logr.Discard()
	}
	return logr.NewContext(ctx, logr.New(listener{to: log.GetSink(), lost: r.lost}))
}

// Init does nothing: the sink was made ready by its own logger.
func (l listener) Init(logr.RuntimeInfo) {}

// Enabled is true for the lines that are heard, and for what the sink takes.
func (l listener) Enabled(level int) bool { return level == 0 || l.to != nil && l.to.Enabled(level) }

// Info hears a line, and passes it on.
func (l listener) Info(level int, message string, values ...any) {
	if strings.Contains(message, inPlaceMessage) {
		for i := 1; i < len(values); i += 2 {
			if fields, ok := values[i].([]string); ok && values[i-1] == "fields" {
				l.lost(fields)
			}
		}
	}
	if l.to != nil && l.to.Enabled(level) {
		l.to.Info(level, message, values...)
	}
}

// Error passes a line on.
func (l listener) Error(err error, message string, values ...any) {
	if l.to != nil {
		l.to.Error(err, message, values...)
	}
}

// WithValues is a listener with more values.
func (l listener) WithValues(values ...any) logr.LogSink {
	if l.to != nil {
		l.to = l.to.WithValues(values...)
	}
	return l
}

// WithName is a listener with a longer name.
func (l listener) WithName(name string) logr.LogSink {
	if l.to != nil {
		l.to = l.to.WithName(name)
	}
	return l
}
