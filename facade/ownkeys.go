package facade

import (
	"encoding/json"
	"slices"

	"go.uber.org/zap/zapcore"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
)

// aboutKeys are the keys that say what a line is about. The framework gives them to a logger before a handler gets it:
// what the handler logs under the same keys later is its own word, and is shown under others.
var aboutKeys = []string{"kind", "namespace", "name", "handler", "reason", "type", "attempt"}

// extra is in front of a key that is taken.
const extra = "extra."

// ownKeys keeps a line's own keys from being overwritten by values of handlers, and the logger from values that panic.
type ownKeys struct {
	core  zapcore.Core
	taken []string
}

var _ zapcore.Core = ownKeys{}

// Enabled is that of the core.
func (o ownKeys) Enabled(level zapcore.Level) bool { return o.core.Enabled(level) }

// With takes the keys that say what the lines are about.
func (o ownKeys) With(fields []zapcore.Field) zapcore.Core {
	fields = o.settled(fields)
	for _, field := range fields {
		if slices.Contains(aboutKeys, field.Key) {
			o.taken = append(slices.Clip(o.taken), field.Key)
		}
	}
	o.core = o.core.With(fields)
	return o
}

// Check adds this core in the place of the one inside.
func (o ownKeys) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if o.Enabled(entry.Level) {
		return checked.AddCore(entry, o)
	}
	return checked
}

// Write gives the core fields that it can write.
func (o ownKeys) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	return o.core.Write(entry, o.settled(fields))
}

// Sync is that of the core.
func (o ownKeys) Sync() error { return o.core.Sync() }

// settled are the fields under keys that are free. An identity without a namespace has none, whatever is said later.
func (o ownKeys) settled(fields []zapcore.Field) []zapcore.Field {
	settled := make([]zapcore.Field, 0, len(fields))
	for _, field := range fields {
		if slices.Contains(o.taken, field.Key) || field.Key == "namespace" && slices.Contains(o.taken, "name") {
			field.Key = extra + field.Key
		}
		settled = append(settled, harmless(field))
	}
	return settled
}

// harmless is the field itself, unless it panics when it is encoded.
func harmless(field zapcore.Field) zapcore.Field {
	switch field.Type {
	case zapcore.ReflectType, zapcore.StringerType, zapcore.ErrorType, zapcore.ObjectMarshalerType,
		zapcore.ArrayMarshalerType, zapcore.InlineMarshalerType:
	default:
		return field
	}
	err := panics.Contain(func() error {
		switch value := field.Interface.(type) {
		case error:
			_ = value.Error()
		default:
			values := zapcore.NewMapObjectEncoder()
			field.AddTo(values)
			_, _ = json.Marshal(values.Fields)
		}
		return nil
	})
	if err == nil {
		return field
	}
	return zapcore.Field{Key: field.Key, Type: zapcore.StringType, String: panics.Text(field.Interface)}
}
