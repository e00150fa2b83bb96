package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.uber.org/zap/zapcore"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
)

// lineCore writes logs for people: one line a message,
//
//	2024-05-06 07:08:09.123 INFO  [default/example-1] Handler succeeded handler=create_fn reason=create
//
// with the object in front, as it is what one looks for. Only stacks, and further lines of a message, follow on lines
// of their own, behind a tab. No terminal obeys anything in a line, and nothing in it looks like another line.
type lineCore struct {
	out      zapcore.WriteSyncer
	plain    bool   // without time and level
	operator string // the logger name that is left out
	fields   []zapcore.Field
}

var _ zapcore.Core = (*lineCore)(nil)

// Enabled is always true: another core around this one filters by level.
func (*lineCore) Enabled(zapcore.Level) bool { return true }

// With gives the core for a logger with more values.
func (l *lineCore) With(fields []zapcore.Field) zapcore.Core {
	derived := *l
	derived.fields = append(l.fields[:len(l.fields):len(l.fields)], fields...)
	return &derived
}

// Check adds this core.
func (l *lineCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return checked.AddCore(entry, l)
}

// Sync is that of the writer.
func (l *lineCore) Sync() error { return l.out.Sync() }

// Write writes one message by one call.
func (l *lineCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	values, object := l.lineFields(fields)
	var line strings.Builder
	if !l.plain {
		fmt.Fprintf(
			&line, "%s %-5s ", entry.Time.Format("2006-01-02 15:04:05.000"), strings.ToUpper(severity(entry.Level)),
		)
	}
	if object != "" {
		fmt.Fprintf(&line, "[%s] ", quoteInBrackets(object))
	}
	line.WriteString(indent(entry.Message))
	if name := l.loggerName(entry); name != "" {
		fmt.Fprintf(&line, " logger=%s", quote(name))
	}
	stack := ""
	for _, f := range values {
		if f.key == "stack" {
			stack = fmt.Sprint(f.value)
			continue
		}
		fmt.Fprintf(&line, " %s=%s", quote(f.key), format(f.value))
	}
	if stack != "" {
		line.WriteString("\n\t" + indent(strings.TrimSpace(stack)))
	}
	line.WriteByte('\n')
	_, err := l.out.Write([]byte(line.String()))
	return err
}

// loggerName is the name of the logger without that of the operator.
func (l *lineCore) loggerName(entry zapcore.Entry) string {
	if rest, ours := strings.CutPrefix(entry.LoggerName+".", l.operator+"."); ours {
		return strings.TrimSuffix(rest, ".")
	}
	return entry.LoggerName
}

// field is a key of a line with its value.
type field struct {
	key   string
	value any
}

// lineFields gives the fields of the message, then those of the logger, each key once. The namespace and the name of
// the object are not among them: they are given as one.
func (l *lineCore) lineFields(ofMessage []zapcore.Field) (fields []field, object string) {
	own := evaluate(ofMessage)
	var namespace, name string
	for _, f := range append(own, without(evaluate(l.fields), own)...) {
		text, isText := f.value.(string)
		switch {
		case f.key == "namespace" && isText:
			namespace = text
		case f.key == "name" && isText:
			name = text
		default:
			fields = append(fields, f)
		}
	}
	switch {
	case name == "" && namespace != "":
		return append(fields, field{"namespace", namespace}), ""
	case namespace != "":
		return fields, namespace + "/" + name
	default:
		return fields, name
	}
}

// evaluate gives the values of zap's fields; of two with one key, the later value, at the place of the first.
func evaluate(given []zapcore.Field) []field {
	fields := make([]field, 0, len(given))
	for _, one := range given {
		values := zapcore.NewMapObjectEncoder()
		one.AddTo(values)
		value, ok := values.Fields[one.Key]
		if !ok {
			continue
		}
		if at := slices.IndexFunc(fields, func(f field) bool { return f.key == one.Key }); at >= 0 {
			fields[at].value = value
			continue
		}
		fields = append(fields, field{one.Key, value})
	}
	return fields
}

// without leaves out the fields that others have.
func without(fields, others []field) []field {
	return slices.DeleteFunc(fields, func(f field) bool {
		return slices.ContainsFunc(others, func(other field) bool { return other.key == f.key })
	})
}

// format writes a value so that it stays on one line.
func format(value any) string {
	switch value := value.(type) {
	case string:
		return quote(value)
	case error, fmt.Stringer:
		return quote(panics.Text(value))
	}
	if text := reflect.ValueOf(value); text.Kind() == reflect.String {
		return quote(text.String())
	}
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false) // "2 -> 3" is for people
	if err := encoder.Encode(value); err == nil {
		return string(escapeJSON(bytes.TrimSuffix(data.Bytes(), []byte("\n"))))
	}
	return quote(fmt.Sprint(value))
}
