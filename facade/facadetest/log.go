package facadetest

import (
	"context"
	"strings"

	"github.com/go-logr/logr"
)

// inPlaceMessage is a part of the two messages that report changes in place: for handlers of changes and for validating
// handlers. It leaves out their first letter, which is a capital in only one of them.
const inPlaceMessage = "andler changed its copy of the object"

// inPlaceSink forwards log lines to another sink, and records changes in place. The log is the only place where an
// operator reports these.
type inPlaceSink struct {
	inner        logr.LogSink // nil discards the lines
	recordFields func(fields []string)
}

var _ logr.LogSink = inPlaceSink{}

// withListener returns a context with a logger that records changes in place for the test. Lines go on to the logger of
// the context.
func withListener(ctx context.Context, r *recorder) context.Context {
	log, err := logr.FromContext(ctx)
	if err != nil {
		log = logr.Discard()
	}
	return logr.NewContext(ctx, logr.New(inPlaceSink{inner: log.GetSink(), recordFields: r.recordInPlaceFields}))
}

// Init does nothing: the inner sink was initialized by its own logger.
func (l inPlaceSink) Init(logr.RuntimeInfo) {}

// Enabled returns true for level 0 even if the inner sink is off, because warnings about changes in place have this
// level.
func (l inPlaceSink) Enabled(level int) bool {
	return level == 0 || l.inner != nil && l.inner.Enabled(level)
}

// Info records the fields of a change in place, and forwards the line.
func (l inPlaceSink) Info(level int, message string, values ...any) {
	if strings.Contains(message, inPlaceMessage) {
		for i := 1; i < len(values); i += 2 {
			if fields, ok := values[i].([]string); ok && values[i-1] == "fields" {
				l.recordFields(fields)
			}
		}
	}
	if l.inner != nil && l.inner.Enabled(level) {
		l.inner.Info(level, message, values...)
	}
}

// Error forwards the line.
func (l inPlaceSink) Error(err error, message string, values ...any) {
	if l.inner != nil {
		l.inner.Error(err, message, values...)
	}
}

// WithValues returns a sink whose inner sink has the values. The recorded lines do not need them.
func (l inPlaceSink) WithValues(values ...any) logr.LogSink {
	if l.inner != nil {
		l.inner = l.inner.WithValues(values...)
	}
	return l
}

// WithName returns a sink whose inner sink has the longer name.
func (l inPlaceSink) WithName(name string) logr.LogSink {
	if l.inner != nil {
		l.inner = l.inner.WithName(name)
	}
	return l
}
