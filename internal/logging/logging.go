package logging

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// WithDeferredValues returns a logger with more values, like log.WithValues. The values must not change afterwards,
// because they are formatted with the first line. Many loggers format values when they get them, which is a
// considerable part of the cost of a pass; most loggers never log a line. Formatting is deferred only if the sink
// supports log/slog, as those of zap and of the facade do. Code that adds values to the returned logger gets an
// ordinary logger.
func WithDeferredValues(log logr.Logger, keysAndValues ...any) logr.Logger {
	switch sink := log.GetSink().(type) {
	case *deferredSink:
		return log.WithSink(sink.appendValues(keysAndValues))
	case logr.SlogSink:
		// The caller may reuse its slice before the values are formatted.
		return log.WithSink(&deferredSink{base: sink, values: slices.Clone(keysAndValues)})
	default:
		return log.WithValues(keysAndValues...)
	}
}

// DeferAllValues returns a logger that also defers the values which other code adds with WithValues. controller-runtime
// adds an id to the logger of each request, and few lines ever contain it.
func DeferAllValues(log logr.Logger) logr.Logger {
	log = WithDeferredValues(log)
	if sink, is := log.GetSink().(*deferredSink); is {
		return log.WithSink(&deferredSink{base: sink.base, values: sink.values, defersAll: true})
	}
	return log
}

// WithFormattedValues is [WithDeferredValues] for the loggers that users' functions receive. The values are formatted
// at once, and the sink is that of the user's logger, so functions may convert it to its concrete type.
func WithFormattedValues(log logr.Logger, keysAndValues ...any) logr.Logger {
	if sink, is := log.GetSink().(*deferredSink); is {
		return log.WithSink(sink.base.WithValues(slices.Concat(sink.values, keysAndValues)...))
	}
	return log.WithValues(keysAndValues...)
}

// OfKind returns a logger with the kind, under "apiVersion" and "kind".
func OfKind(log logr.Logger, kind schema.GroupVersionKind) logr.Logger {
	return log.WithValues("apiVersion", kind.GroupVersion().String(), "kind", kind.Kind)
}

// OfObject adds an object to a logger of [OfKind], under "namespace", "name" and "uid". The namespace is empty for
// cluster-scoped objects. Pass an empty uid for an object that may have been replaced by another one with the same
// name; the lines then do not have the key "uid".
func OfObject(log logr.Logger, key types.NamespacedName, uid types.UID) logr.Logger {
	if uid == "" {
		return WithDeferredValues(log, "namespace", key.Namespace, "name", key.Name)
	}
	return WithDeferredValues(log, "namespace", key.Namespace, "name", key.Name, "uid", string(uid))
}

// OfHandler is [OfObject] with one handler of the object, under "handler".
func OfHandler(log logr.Logger, key types.NamespacedName, uid types.UID, id string) logr.Logger {
	return WithDeferredValues(log, "namespace", key.Namespace, "name", key.Name, "uid", string(uid), "handler", id)
}

// OfKindAndObject combines [OfKind] and [OfObject], and formats the values of both only once.
func OfKindAndObject(
	log logr.Logger, kind schema.GroupVersionKind, key types.NamespacedName, uid types.UID,
) logr.Logger {
	values := []any{
		"apiVersion", kind.GroupVersion().String(), "kind", kind.Kind, "namespace", key.Namespace, "name", key.Name,
	}
	if uid != "" {
		values = append(values, "uid", string(uid))
	}
	return WithDeferredValues(log, values...)
}

// Warn logs a warning. logr has no level between Info and Error, so this goes through log/slog. Loggers without slog
// support log an info line.
func Warn(log logr.Logger, message string, keysAndValues ...any) {
	ctx, handler := context.Background(), logr.ToSlogHandler(log)
	if !handler.Enabled(ctx, slog.LevelWarn) {
		return
	}
	var callers [1]uintptr
	// Skip runtime.Callers and Warn itself: the line names the caller of Warn.
	runtime.Callers(2, callers[:])
	record := slog.NewRecord(time.Now(), slog.LevelWarn, message, callers[0])
	record.Add(keysAndValues...)
	// Like logr, a failure to log is ignored.
	_ = handler.Handle(ctx, record)
}
