package console

import (
	"encoding/json"
	"slices"

	"go.uber.org/zap/zapcore"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
)

// extraPrefix is in front of a key that is taken.
const extraPrefix = "extra."

// reservedKeys is a core that gives no key twice to a line, and keeps values that panic from ending the process. The
// framework gives a logger the keys that say what the lines are about before a handler gets it; what the handler logs
// under the same keys later is its own word, and appears under others. So does what it says twice itself: who reads
// JSON sees the last of several values only.
type reservedKeys struct {
	core  zapcore.Core
	taken []string
}

var _ zapcore.Core = reservedKeys{}

// Enabled is that of the core.
func (r reservedKeys) Enabled(level zapcore.Level) bool { return r.core.Enabled(level) }

// With takes the keys of these fields.
func (r reservedKeys) With(fields []zapcore.Field) zapcore.Core {
	fields, r.taken = r.rename(fields)
	r.core = r.core.With(fields)
	return r
}

// Check adds this core in the place of the one inside.
func (r reservedKeys) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if r.Enabled(entry.Level) {
		return checked.AddCore(entry, r)
	}
	return checked
}

// Write gives the core fields that it can write.
func (r reservedKeys) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	fields, _ = r.rename(fields)
	return r.core.Write(entry, fields)
}

// Sync is that of the core.
func (r reservedKeys) Sync() error { return r.core.Sync() }

// rename gives the fields under keys that are free, and all keys that are taken then. An object without a namespace has
// none, whatever the handler says.
func (r reservedKeys) rename(fields []zapcore.Field) (renamed []zapcore.Field, taken []string) {
	renamed, taken = make([]zapcore.Field, 0, len(fields)), slices.Clip(r.taken)
	for _, field := range fields {
		if field.Key == "namespace" && slices.Contains(r.taken, "name") {
			field.Key = extraPrefix + field.Key
		}
		for slices.Contains(taken, field.Key) {
			field.Key = extraPrefix + field.Key
		}
		taken = append(taken, field.Key)
		renamed = append(renamed, containField(field))
	}
	return renamed, taken
}

// containField gives the field itself; or, if it panics when it is encoded, one with the text that can be had.
func containField(field zapcore.Field) zapcore.Field {
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
