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

// With is log.WithValues for a logger that may never say anything, and values that never change. Many loggers format
// their values when they get them, which is a good part of what a look at an object costs; this one has it done with
// its first line, if it knows about log/slog: zap's and the facade's do. Others that add values to it get a logger of
// the usual kind.
func With(log logr.Logger, keysAndValues ...any) logr.Logger {
	switch sink := log.GetSink().(type) {
	case *deferred:
		return log.WithSink(sink.with(keysAndValues))
	case logr.SlogSink:
		return log.WithSink(&deferred{base: sink, values: slices.Clone(keysAndValues)})
	default:
		return log.WithValues(keysAndValues...)
	}
}

// Deferring is a logger that takes what others add to it as values of [With].
func Deferring(log logr.Logger) logr.Logger {
	log = With(log)
	if sink, is := log.GetSink().(*deferred); is {
		return log.WithSink(&deferred{base: sink.base, values: sink.values, all: true})
	}
	return log
}

// Formatted is With for functions of users, who may know what their logger is: it has its values at once.
func Formatted(log logr.Logger, keysAndValues ...any) logr.Logger {
	if sink, is := log.GetSink().(*deferred); is {
		return log.WithSink(sink.base.WithValues(slices.Concat(sink.values, keysAndValues)...))
	}
	return log.WithValues(keysAndValues...)
}

// OfKind gives a logger with the kind in its lines, under "apiVersion" and "kind".
func OfKind(log logr.Logger, kind schema.GroupVersionKind) logr.Logger {
	return log.WithValues("apiVersion", kind.GroupVersion().String(), "kind", kind.Kind)
}

// OfObject gives a logger of a kind, of [OfKind], with an object in its lines, under "namespace", "name" and "uid". The
// namespace is empty for those without one. Of an object that may have been replaced by another one of the same name,
// the uid is empty, and not in the lines.
func OfObject(log logr.Logger, key types.NamespacedName, uid types.UID) logr.Logger {
	if uid == "" {
		return With(log, "namespace", key.Namespace, "name", key.Name)
	}
	return With(log, "namespace", key.Namespace, "name", key.Name, "uid", string(uid))
}

// OfHandler is [OfObject], with one of its handlers in the lines, under "handler".
func OfHandler(log logr.Logger, key types.NamespacedName, uid types.UID, id string) logr.Logger {
	return With(log, "namespace", key.Namespace, "name", key.Name, "uid", string(uid), "handler", id)
}

// OfKindAndObject is [OfObject] of [OfKind], at once.
func OfKindAndObject(
	log logr.Logger, kind schema.GroupVersionKind, key types.NamespacedName, uid types.UID,
) logr.Logger {
	values := []any{
		"apiVersion", kind.GroupVersion().String(), "kind", kind.Kind, "namespace", key.Namespace, "name", key.Name,
	}
	if uid != "" {
		values = append(values, "uid", string(uid))
	}
	return With(log, values...)
}

// Warn logs a warning. Loggers that do not know about log/slog have it as an info.
func Warn(log logr.Logger, message string, keysAndValues ...any) {
	ctx, handler := context.Background(), logr.ToSlogHandler(log)
	if !handler.Enabled(ctx, slog.LevelWarn) {
		return
	}
	var callers [1]uintptr
	runtime.Callers(2, callers[:])
	record := slog.NewRecord(time.Now(), slog.LevelWarn, message, callers[0])
	record.Add(keysAndValues...)
	_ = handler.Handle(ctx, record) // as with logr, there is nobody to tell
}
