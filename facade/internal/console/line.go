package console

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// line is what is written by one call.
type line struct {
	time    time.Time
	level   slog.Level
	logger  string
	message string
	object  reference
	// fields are those of the message, then those of its logger; no key is there twice.
	fields []field
}

// field is a key of a line with its value.
type field struct {
	key   string
	value any
}

// lineHandler writes lines. It gives no key twice to a line. The framework gives a logger the keys that say what the
// lines are about before a handler gets it; what the handler logs under the same keys later is its own word, and
// appears under others. So does what it says twice itself: who reads JSON sees the last of several values only.
type lineHandler struct {
	out     io.Writer
	level   slog.Level
	compose func(*line) []byte

	object reference
	fields []field // of the logger
	groups string  // in front of all keys that follow
}

var _ slog.Handler = (*lineHandler)(nil)

// Enabled tells whether lines of the level are written.
func (h *lineHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

// WithAttrs gives a handler of which the lines have more fields.
func (h *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	derived := *h
	derived.fields = slices.Clip(h.fields)
	for _, f := range flattened(attrs, h.groups) {
		if derived.object.take(f) {
			continue
		}
		f.key = derived.free(f.key, nil)
		derived.fields = append(derived.fields, f)
	}
	return &derived
}

// WithGroup gives a handler of which the further fields have the name in front of their keys.
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
	own := make([]field, 0, record.NumAttrs()+len(h.fields))
	first := true
	record.Attrs(func(a slog.Attr) bool {
		if first && a.Key == loggerKey && a.Value.Kind() == slog.KindString {
			l.logger = a.Value.String()
		} else {
			for _, f := range flattened([]slog.Attr{a}, h.groups) {
				f.key = h.free(f.key, own)
				own = append(own, f)
			}
		}
		first = false
		return true
	})
	l.fields = append(own, h.fields...)
	l.object.release(&l.fields)
	_, err := h.out.Write(h.compose(l))
	return err
}

// extraPrefix is in front of a key that is taken.
const extraPrefix = "extra."

// keysOfLines are in lines of JSON without being anybody's values.
var keysOfLines = []string{"timestamp", "severity", "message", loggerKey}

// KeysOfLines are the keys of JSON lines that have a meaning of their own.
func KeysOfLines() []string { return slices.Clone(keysOfLines) }

// free gives a key that is not taken, by the logger or by the other fields of the message.
func (h *lineHandler) free(key string, others []field) string {
	is := func(f field) bool { return f.key == key }
	for slices.Contains(keysOfLines, key) || h.object.has(key) || slices.ContainsFunc(h.fields, is) ||
		slices.ContainsFunc(others, is) {
		key = extraPrefix + key
	}
	return key
}

// flattened are the values, with groups as prefixes of keys.
func flattened(attrs []slog.Attr, groups string) (fields []field) {
	for _, a := range attrs {
		value := a.Value.Resolve()
		switch {
		case value.Kind() == slog.KindGroup && a.Key == "":
			fields = append(fields, flattened(value.Group(), groups)...)
		case value.Kind() == slog.KindGroup:
			fields = append(fields, flattened(value.Group(), groups+a.Key+".")...)
		case a.Key != "":
			fields = append(fields, field{groups + a.Key, value.Any()})
		}
	}
	return fields
}

// lockedWriter writes one line after the other.
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
