package console

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// line is the content of one log line, before it is formatted.
type line struct {
	time    time.Time
	level   slog.Level
	logger  string
	message string
	object  reference
	// fields are those of the message, followed by those of its logger. Keys are unique.
	fields []field
}

// field is a key of a line with its value.
type field struct {
	key   string
	value any
}

// lineHandler writes lines. It makes keys unique, because readers of JSON see only the last of several values.
//
// The framework sets the keys that identify the object before a user's handler gets the logger. If the handler logs
// under the same keys, its values get other keys, and so do values that it logs twice.
type lineHandler struct {
	out     io.Writer
	level   slog.Level
	compose func(*line) []byte

	// object is the reference of the logger.
	object reference
	fields []field // of the logger
	groups string  // prefix of all keys that follow
}

var _ slog.Handler = (*lineHandler)(nil)

// Enabled reports whether lines of the level are written.
func (h *lineHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

// WithAttrs returns a handler with more fields in its lines.
func (h *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	derived := *h
	// Clip forces append to copy: several loggers can be derived from one.
	derived.fields = slices.Clip(h.fields)
	for _, f := range flattenGroups(attrs, h.groups) {
		if derived.object.adoptField(f) {
			continue
		}
		f.key = derived.freeKey(f.key, nil)
		derived.fields = append(derived.fields, f)
	}
	return &derived
}

// WithGroup returns a handler that adds the name in front of the keys of further fields.
func (h *lineHandler) WithGroup(name string) slog.Handler {
	derived := *h
	if name != "" {
		derived.groups += name + "."
	}
	return &derived
}

// Handle writes one line.
func (h *lineHandler) Handle(_ context.Context, record slog.Record) error {
	l := &line{time: record.Time, level: record.Level, message: record.Message, object: h.object}
	// The capacity avoids a further allocation when the logger's fields are appended.
	own := make([]field, 0, record.NumAttrs()+len(h.fields))
	first := true
	record.Attrs(func(a slog.Attr) bool {
		// The sink adds the logger's name as the first attribute. A later one is a value of the message.
		if first && a.Key == loggerKey && a.Value.Kind() == slog.KindString {
			l.logger = a.Value.String()
		} else {
			for _, f := range flattenGroups([]slog.Attr{a}, h.groups) {
				f.key = h.freeKey(f.key, own)
				own = append(own, f)
			}
		}
		first = false
		return true
	})
	l.fields = append(own, h.fields...)
	// Values that do not identify an object are shown as normal fields.
	l.object.releaseFields(&l.fields)
	_, err := h.out.Write(h.compose(l))
	return err
}

// extraPrefix is added to a key that is already in use.
const extraPrefix = "extra."

// jsonLineKeys are the keys that each JSON line has on its own.
var jsonLineKeys = []string{"timestamp", "severity", "message", loggerKey}

// JSONLineKeys returns the keys of JSON lines that have a fixed meaning.
func JSONLineKeys() []string { return slices.Clone(jsonLineKeys) }

// freeKey returns a key that neither the logger nor other fields of the message use.
func (h *lineHandler) freeKey(key string, others []field) string {
	is := func(f field) bool { return f.key == key }
	// The prefix is repeated until the key is unique.
	for slices.Contains(jsonLineKeys, key) || h.object.hasKey(key) || slices.ContainsFunc(h.fields, is) ||
		slices.ContainsFunc(others, is) {
		key = extraPrefix + key
	}
	return key
}

// flattenGroups returns the values without groups: the names of groups become prefixes of keys.
func flattenGroups(attrs []slog.Attr, groups string) (fields []field) {
	for _, a := range attrs {
		// A LogValuer computes its value only now, when the line is written.
		value := a.Value.Resolve()
		switch {
		case value.Kind() == slog.KindGroup && a.Key == "":
			fields = append(fields, flattenGroups(value.Group(), groups)...)
		case value.Kind() == slog.KindGroup:
			fields = append(fields, flattenGroups(value.Group(), groups+a.Key+".")...)
		case a.Key != "":
			fields = append(fields, field{groups + a.Key, value.Any()})
		}
	}
	return fields
}

// lockedWriter writes one line at a time, so that concurrent lines do not mix.
type lockedWriter struct {
	mu  sync.Mutex
	out io.Writer
}

// Write writes one line by one call.
func (w *lockedWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(line)
}

// referenceKeys are the keys by which loggers identify the object of their lines, in the order of Kopf's references.
var referenceKeys = []string{"apiVersion", "kind", "name", "uid", "namespace"}

// reference identifies the object of a line. It comes from the logger: values of a message under the same keys concern
// other objects.
type reference struct {
	// values are the known values of [referenceKeys].
	values [5]string
	isSet  [5]bool
}

// adoptField adopts the field if it is the first one for its key. A cluster-scoped object has no namespace, so a later
// one is not adopted.
func (r *reference) adoptField(f field) bool {
	at := slices.Index(referenceKeys, f.key)
	if at < 0 || r.hasKey(f.key) {
		return false
	}
	text, isText := f.value.(string)
	if !isText {
		stringer, ok := f.value.(fmt.Stringer)
		if !ok {
			return false
		}
		text = valueText(stringer)
	}
	r.values[at], r.isSet[at] = text, true
	return true
}

// hasKey reports whether the reference uses the key.
func (r *reference) hasKey(key string) bool {
	at := slices.Index(referenceKeys, key)
	return at >= 0 && (r.isSet[at] || key == "namespace" && r.isObject())
}

// isObject reports whether an object is identified. A kind or a namespace alone is not an object.
func (r *reference) isObject() bool { return r.isSet[slices.Index(referenceKeys, "name")] }

// messagePrefix returns "namespace/name", or the name of a cluster-scoped object, for the beginning of messages.
func (r *reference) messagePrefix() string {
	name, namespace := r.values[2], r.values[4]
	if namespace != "" {
		return namespace + "/" + name
	}
	return name
}

// releaseFields turns the known values into normal fields if they do not identify an object.
func (r *reference) releaseFields(fields *[]field) {
	if r.isObject() {
		return
	}
	for at, key := range referenceKeys {
		if r.isSet[at] {
			*fields = append(*fields, field{key, r.values[at]})
		}
	}
}
