package console

import (
	"bytes"
	"log/slog"
	"slices"
)

// jsonFormat is for machines: one object a line, with the keys of Kopf. People look at it in terminals, too, so nothing
// in it is a control character.
type jsonFormat struct {
	referenceKey string
	prefixed     bool
}

func (j jsonFormat) compose(l *line) []byte {
	message := l.message
	if j.prefixed && l.object.isObject() {
		message = "[" + quoteInBrackets(l.object.prefix()) + "] " + message
	}
	fields := []field{
		{"timestamp", l.time.UTC().Format("2006-01-02T15:04:05.000000-07:00")}, {"severity", severity(l.level)},
		{"message", message},
	}
	if l.logger != "" {
		fields = append(fields, field{loggerKey, l.logger})
	}
	if l.object.isObject() {
		fields = append(fields, field{j.referenceKey, l.object.nullable()})
	}
	taken := len(fields)
	for _, f := range l.fields {
		for slices.ContainsFunc(fields, func(other field) bool { return other.key == f.key }) {
			f.key = extraPrefix + f.key
		}
		fields = append(fields, f)
	}
	return j.encode(fields[:taken], fields[taken:])
}

func (jsonFormat) encode(lists ...[]field) []byte {
	var data bytes.Buffer
	separator := byte('{')
	for _, fields := range lists {
		for _, f := range fields {
			data.WriteByte(separator)
			data.Write(encoded(f.key))
			data.WriteByte(':')
			data.Write(encoded(f.value))
			separator = ','
		}
	}
	data.WriteByte('}')
	return append(escapeJSON(data.Bytes()), '\n')
}

// nullable is the reference as Kopf writes it: what is not known is null, as is the namespace of what has none.
func (r *reference) nullable() map[string]any {
	values := map[string]any{}
	for at, key := range referenceKeys {
		values[key] = nil
		if r.values[at] != "" {
			values[key] = r.values[at]
		}
	}
	return values
}

// severity is Kopf's name of a level in JSON.
func severity(level slog.Level) string {
	switch {
	case level < slog.LevelInfo:
		return "debug"
	case level < slog.LevelWarn:
		return "info"
	case level < slog.LevelError:
		return "warn"
	case level < beyondErrors:
		return "error"
	default:
		return "fatal"
	}
}
