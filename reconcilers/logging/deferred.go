package logging

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/go-logr/logr"
)

// deferred is a sink that formats its values with the first line that is logged through it. A pass makes a logger for
// its object and usually logs nothing, so most values are never formatted. It is immutable except for the fields behind
// once, and is safe for concurrent use.
type deferred struct {
	base   logr.SlogSink
	values []any
	all    bool // also defers the values that other code adds with WithValues

	// The first line sets the fields below, guarded by once.
	once   sync.Once
	made   logr.LogSink // base with the values
	behind logr.LogSink // made with a call depth of one: the methods of deferred add a frame
}

var (
	_ logr.CallDepthLogSink = (*deferred)(nil)
	_ logr.SlogSink         = (*deferred)(nil)
)

// formatValues formats the values on the first call. It returns d with both sinks set.
func (d *deferred) formatValues() *deferred {
	d.once.Do(func() {
		// A sync.Once is done even if its function panics. Later lines then use the base, without the values, instead
		// of a nil sink.
		d.made, d.behind = d.base, d.base
		d.made = d.base.WithValues(d.values...)
		d.behind = d.made
		if deep, ok := d.made.(logr.CallDepthLogSink); ok {
			d.behind = deep.WithCallDepth(1)
		}
	})
	return d
}

// appendValues returns a sink with more deferred values. slices.Concat copies, so sinks that have the same parent do not share
// the array that they append to.
func (d *deferred) appendValues(keysAndValues []any) *deferred {
	return &deferred{base: d.base, values: slices.Concat(d.values, keysAndValues), all: d.all}
}

// onBase returns a sink with the same values on another base. The values stay deferred if that base supports log/slog.
func (d *deferred) onBase(base logr.LogSink) logr.LogSink {
	if base, is := base.(logr.SlogSink); is {
		return &deferred{base: base, values: d.values, all: d.all}
	}
	return base.WithValues(d.values...)
}

// Init does nothing, because the base is already initialized.
func (*deferred) Init(logr.RuntimeInfo) {}

// Enabled returns the answer of the base. It does not depend on the values, so nothing is formatted.
func (d *deferred) Enabled(verbosity int) bool { return d.base.Enabled(verbosity) }

// Info implements logr.LogSink.
func (d *deferred) Info(verbosity int, message string, keysAndValues ...any) {
	d.formatValues().behind.Info(verbosity, message, keysAndValues...)
}

// Error implements logr.LogSink.
func (d *deferred) Error(err error, message string, keysAndValues ...any) {
	d.formatValues().behind.Error(err, message, keysAndValues...)
}

// WithValues implements logr.LogSink. By default it formats the values and returns a sink of the usual kind, because
// the values of other code may change before the first line.
func (d *deferred) WithValues(keysAndValues ...any) logr.LogSink {
	if d.all {
		return d.appendValues(keysAndValues)
	}
	return d.formatValues().made.WithValues(keysAndValues...)
}

// WithName implements logr.LogSink. It adds the name to the base, so the values stay deferred.
func (d *deferred) WithName(name string) logr.LogSink { return d.onBase(d.base.WithName(name)) }

// WithCallDepth implements logr.CallDepthLogSink. A base without call depths is used unchanged.
func (d *deferred) WithCallDepth(depth int) logr.LogSink {
	if deep, ok := d.base.(logr.CallDepthLogSink); ok {
		return d.onBase(deep.WithCallDepth(depth))
	}
	return d
}

// Handle implements logr.SlogSink. If WithValues of the base returned a sink without slog support, the record is
// converted into a line of logr.
func (d *deferred) Handle(ctx context.Context, record slog.Record) error {
	if sink, is := d.formatValues().behind.(logr.SlogSink); is {
		return sink.Handle(ctx, record)
	}
	return logr.ToSlogHandler(logr.Logger{}.WithSink(d.behind)).Handle(ctx, record)
}

// WithAttrs implements logr.SlogSink. Without slog support, attributes become ordinary keys and values.
func (d *deferred) WithAttrs(attrs []slog.Attr) logr.SlogSink {
	if sink, is := d.formatValues().made.(logr.SlogSink); is {
		return sink.WithAttrs(attrs)
	}
	var values []any
	for _, a := range attrs {
		values = append(values, a.Key, a.Value.Any())
	}
	return d.appendValues(values)
}

// WithGroup implements logr.SlogSink. Without slog support, the group is dropped: logr has no equivalent.
func (d *deferred) WithGroup(name string) logr.SlogSink {
	if sink, is := d.formatValues().made.(logr.SlogSink); is {
		return sink.WithGroup(name)
	}
	return d
}
