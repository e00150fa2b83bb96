package logging

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/go-logr/logr"
)

// deferred is a sink that gets its values later.
type deferred struct {
	base   logr.SlogSink
	values []any
	all    bool // also those that others add

	once   sync.Once
	made   logr.LogSink // of the two
	behind logr.LogSink // the same, for lines that come by way of the deferred one, whose callers are to be found
}

var (
	_ logr.CallDepthLogSink = (*deferred)(nil)
	_ logr.SlogSink         = (*deferred)(nil)
)

// format formats the values, if nobody has.
func (d *deferred) format() *deferred {
	d.once.Do(func() {
		d.made, d.behind = d.base, d.base // should the base panic
		d.made = d.base.WithValues(d.values...)
		d.behind = d.made
		if deep, ok := d.made.(logr.CallDepthLogSink); ok {
			d.behind = deep.WithCallDepth(1)
		}
	})
	return d
}

func (d *deferred) with(keysAndValues []any) *deferred {
	return &deferred{base: d.base, values: slices.Concat(d.values, keysAndValues), all: d.all}
}

// on is the same on another base, which it is if it knows about log/slog.
func (d *deferred) on(base logr.LogSink) logr.LogSink {
	if base, is := base.(logr.SlogSink); is {
		return &deferred{base: base, values: d.values, all: d.all}
	}
	return base.WithValues(d.values...)
}

// Init does nothing: the base has been initialised.
func (*deferred) Init(logr.RuntimeInfo) {}

// Enabled asks the base, as it does not depend on values.
func (d *deferred) Enabled(verbosity int) bool { return d.base.Enabled(verbosity) }

// Info implements logr.LogSink.
func (d *deferred) Info(verbosity int, message string, keysAndValues ...any) {
	d.format().behind.Info(verbosity, message, keysAndValues...)
}

// Error implements logr.LogSink.
func (d *deferred) Error(err error, message string, keysAndValues ...any) {
	d.format().behind.Error(err, message, keysAndValues...)
}

// WithValues implements logr.LogSink.
func (d *deferred) WithValues(keysAndValues ...any) logr.LogSink {
	if d.all {
		return d.with(keysAndValues)
	}
	return d.format().made.WithValues(keysAndValues...)
}

// WithName implements logr.LogSink.
func (d *deferred) WithName(name string) logr.LogSink { return d.on(d.base.WithName(name)) }

// WithCallDepth implements logr.CallDepthLogSink.
func (d *deferred) WithCallDepth(depth int) logr.LogSink {
	if deep, ok := d.base.(logr.CallDepthLogSink); ok {
		return d.on(deep.WithCallDepth(depth))
	}
	return d
}

// Handle implements logr.SlogSink.
func (d *deferred) Handle(ctx context.Context, record slog.Record) error {
	if sink, is := d.format().behind.(logr.SlogSink); is {
		return sink.Handle(ctx, record)
	}
	return logr.ToSlogHandler(logr.Logger{}.WithSink(d.behind)).Handle(ctx, record)
}

// WithAttrs implements logr.SlogSink.
func (d *deferred) WithAttrs(attrs []slog.Attr) logr.SlogSink {
	if sink, is := d.format().made.(logr.SlogSink); is {
		return sink.WithAttrs(attrs)
	}
	var values []any
	for _, a := range attrs {
		values = append(values, a.Key, a.Value.Any())
	}
	return d.with(values)
}

// WithGroup implements logr.SlogSink.
func (d *deferred) WithGroup(name string) logr.SlogSink {
	if sink, is := d.format().made.(logr.SlogSink); is {
		return sink.WithGroup(name)
	}
	return d
}
