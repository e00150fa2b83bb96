package logging

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/go-logr/logr"
)

// deferredSink is a sink that formats its values with the first line that is logged through it. A pass makes a logger
// for its object and usually logs nothing, so most values are never formatted. It is immutable except for the fields
// behind once, and is safe for concurrent use.
type deferredSink struct {
	base      logr.SlogSink
	values    []any
	defersAll bool // also defers the values that other code adds with WithValues

	// The first line sets the fields below, guarded by once.
	once          sync.Once
	formattedSink logr.LogSink // base with the values
	callerSink    logr.LogSink // made with a call depth of one: the methods of deferred add a frame
}

var (
	_ logr.CallDepthLogSink = (*deferredSink)(nil)
	_ logr.SlogSink         = (*deferredSink)(nil)
)

// formatValues formats the values on the first call. It returns d with both sinks set.
func (d *deferredSink) formatValues() *deferredSink {
	d.once.Do(func() {
		// A sync.Once is done even if its function panics. Later lines then use the base, without the values, instead
		// of a nil sink.
		d.formattedSink, d.callerSink = d.base, d.base
		d.formattedSink = d.base.WithValues(d.values...)
		d.callerSink = d.formattedSink
		if deep, ok := d.formattedSink.(logr.CallDepthLogSink); ok {
			d.callerSink = deep.WithCallDepth(1)
		}
	})
	return d
}

// appendValues returns a sink with more deferred values. slices.Concat copies, so sinks that have the same parent do
// not share the array that they append to.
func (d *deferredSink) appendValues(keysAndValues []any) *deferredSink {
	return &deferredSink{base: d.base, values: slices.Concat(d.values, keysAndValues), defersAll: d.defersAll}
}

// onBase returns a sink with the same values on another base. The values stay deferred if that base supports log/slog.
func (d *deferredSink) onBase(base logr.LogSink) logr.LogSink {
	if base, is := base.(logr.SlogSink); is {
		return &deferredSink{base: base, values: d.values, defersAll: d.defersAll}
	}
	return base.WithValues(d.values...)
}

// Init does nothing, because the base is already initialized.
func (*deferredSink) Init(logr.RuntimeInfo) {}

// Enabled returns the answer of the base. It does not depend on the values, so nothing is formatted.
func (d *deferredSink) Enabled(verbosity int) bool { return d.base.Enabled(verbosity) }

// Info implements logr.LogSink.
func (d *deferredSink) Info(verbosity int, message string, keysAndValues ...any) {
	d.formatValues().callerSink.Info(verbosity, message, keysAndValues...)
}

// Error implements logr.LogSink.
func (d *deferredSink) Error(err error, message string, keysAndValues ...any) {
	d.formatValues().callerSink.Error(err, message, keysAndValues...)
}

// WithValues implements logr.LogSink. By default it formats the values and returns a sink of the usual kind, because
// the values of other code may change before the first line.
func (d *deferredSink) WithValues(keysAndValues ...any) logr.LogSink {
	if d.defersAll {
		return d.appendValues(keysAndValues)
	}
	return d.formatValues().formattedSink.WithValues(keysAndValues...)
}

// WithName implements logr.LogSink. It adds the name to the base, so the values stay deferred.
func (d *deferredSink) WithName(name string) logr.LogSink { return d.onBase(d.base.WithName(name)) }

// WithCallDepth implements logr.CallDepthLogSink. A base without call depths is used unchanged.
func (d *deferredSink) WithCallDepth(depth int) logr.LogSink {
	if deep, ok := d.base.(logr.CallDepthLogSink); ok {
		return d.onBase(deep.WithCallDepth(depth))
	}
	return d
}

// Handle implements logr.SlogSink. If WithValues of the base returned a sink without slog support, the record is
// converted into a line of logr.
func (d *deferredSink) Handle(ctx context.Context, record slog.Record) error {
	if sink, is := d.formatValues().callerSink.(logr.SlogSink); is {
		return sink.Handle(ctx, record)
	}
	return logr.ToSlogHandler(logr.Logger{}.WithSink(d.callerSink)).Handle(ctx, record)
}

// WithAttrs implements logr.SlogSink. Without slog support, attributes become ordinary keys and values.
func (d *deferredSink) WithAttrs(attrs []slog.Attr) logr.SlogSink {
	if sink, is := d.formatValues().formattedSink.(logr.SlogSink); is {
		return sink.WithAttrs(attrs)
	}
	var values []any
	for _, a := range attrs {
		values = append(values, a.Key, a.Value.Any())
	}
	return d.appendValues(values)
}

// WithGroup implements logr.SlogSink. Without slog support, the group is dropped: logr has no equivalent.
func (d *deferredSink) WithGroup(name string) logr.SlogSink {
	if sink, is := d.formatValues().formattedSink.(logr.SlogSink); is {
		return sink.WithGroup(name)
	}
	return d
}
