package console

import "slices"

// composeJSON returns the line as a JSON object, for machines, with the keys of Kopf. The keys keep their order, so a
// map is not used. People read lines in terminals as well, so they contain no control characters.
func (o Options) composeJSON(l *line) []byte {
	message := l.message
	if *o.Prefix && l.object.isObject() {
		message = "[" + quoteInBrackets(l.object.messagePrefix()) + "] " + message
	}
	// Kopf's keys and its time format, with microseconds and an offset.
	fields := []field{
		{"timestamp", l.time.UTC().Format("2006-01-02T15:04:05.000000-07:00")}, {"severity", levelNames(l.level).json},
		{"message", message},
	}
	if l.logger != "" {
		fields = append(fields, field{loggerKey, l.logger})
	}
	if l.object.isObject() {
		fields = append(fields, field{o.ReferenceKey, l.object.withNulls()})
	}
	for _, f := range l.fields {
		// The reference key is configurable and can collide with a key of the message.
		for slices.ContainsFunc(fields, func(other field) bool { return other.key == f.key }) {
			f.key = extraPrefix + f.key
		}
		fields = append(fields, f)
	}
	data := append(make([]byte, 0, 512), '{')
	for _, f := range fields {
		data = append(append(append(data, encodeJSON(f.key)...), ':'), encodeJSON(f.value)...)
		data = append(data, ',')
	}
	// It replaces the last comma.
	data[len(data)-1] = '}'
	return append(escapeJSON(data), '\n')
}

// withNulls returns the reference in Kopf's form: unknown values are null, and so is the namespace of a cluster-scoped
// object.
func (r *reference) withNulls() map[string]any {
	values := map[string]any{}
	for at, key := range referenceKeys {
		values[key] = nil
		if r.values[at] != "" {
			values[key] = r.values[at]
		}
	}
	return values
}
