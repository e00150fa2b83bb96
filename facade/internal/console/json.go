package console

import "slices"

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
		{"timestamp", l.time.UTC().Format("2006-01-02T15:04:05.000000-07:00")}, {"severity", levelNames(l.level).json},
		{"message", message},
	}
	if l.logger != "" {
		fields = append(fields, field{loggerKey, l.logger})
	}
	if l.object.isObject() {
		fields = append(fields, field{j.referenceKey, l.object.nullable()})
	}
	for _, f := range l.fields {
		for slices.ContainsFunc(fields, func(other field) bool { return other.key == f.key }) {
			f.key = extraPrefix + f.key
		}
		fields = append(fields, f)
	}
	data := append(make([]byte, 0, 512), '{')
	for _, f := range fields {
		data = append(append(append(data, encoded(f.key)...), ':'), encoded(f.value)...)
		data = append(data, ',')
	}
	data[len(data)-1] = '}'
	return append(escapeJSON(data), '\n')
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
