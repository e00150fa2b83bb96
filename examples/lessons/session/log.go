package session

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
)

// transcript collects the output of one command.
type transcript struct {
	// excludedTexts are the texts of lines that are left out.
	excludedTexts []string

	mu   sync.Mutex
	text strings.Builder
}

// Write adds to the output.
func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

// take returns the output since the last call.
func (t *transcript) take() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.text.Reset()
	return t.text.String()
}

// logHandler writes the lines about objects and activities, in the format of --log-format=plain. Times, which differ in
// each run, are not shown.
type logHandler struct {
	transcript *transcript
	object     map[string]string
	fields     []slog.Attr
}

var _ slog.Handler = logHandler{}

// Enabled drops the lines of --verbose.
func (h logHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// WithGroup returns the handler: the lines of lessons do not have groups.
func (h logHandler) WithGroup(string) slog.Handler { return h }

// WithAttrs returns a handler with more fields. The parts of the reference to the object are not fields.
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.object, h.fields = maps.Clone(h.object), slices.Clone(h.fields)
	for _, a := range attrs {
		switch a.Key {
		case "apiVersion", "kind", "namespace", "name", "uid":
			if h.object == nil {
				h.object = map[string]string{}
			}
			h.object[a.Key] = a.Value.String()
		default:
			h.fields = append(h.fields, a)
		}
	}
	return h
}

// Handle writes one line.
func (h logHandler) Handle(_ context.Context, record slog.Record) error {
	var fields, last []slog.Attr
	record.Attrs(func(a slog.Attr) bool {
		if _, taken := h.object[a.Key]; taken || slices.ContainsFunc(h.fields, hasKey(a.Key)) {
			a.Key = "extra." + a.Key
		}
		if a.Key == "err" { // the key of logr.FromSlogHandler
			last = append(last, slog.Any("error", a.Value.Any()))
			return true
		}
		fields = append(fields, a)
		return true
	})
	fields = append(append(fields, last...), h.fields...)
	if strings.HasPrefix(record.Message, "Cannot find out the operator's own user") {
		return nil // the API server in memory does not have reviews of access
	}
	isActivity := slices.ContainsFunc(fields, hasKey("activity"))
	text := record.Message
	if name := h.object["name"]; name != "" {
		text = "[" + strings.TrimPrefix(h.object["namespace"]+"/"+name, "/") + "] " + text
	} else if !isActivity {
		return nil
	}
	for _, a := range fields {
		if a.Key == "logger" || a.Key == "stack" {
			continue
		}
		text += " " + a.Key + "=" + format(a.Value.Resolve().Any())
	}
	if slices.ContainsFunc(h.transcript.excludedTexts, func(part string) bool { return strings.Contains(text, part) }) {
		return nil
	}
	_, err := fmt.Fprintln(h.transcript, text)
	return err
}

func hasKey(key string) func(slog.Attr) bool {
	return func(a slog.Attr) bool { return a.Key == key }
}

func format(value any) string {
	var text string
	switch value := value.(type) {
	case string:
		text = value
	case time.Time:
		return "<time>"
	case error:
		text = value.Error()
	case fmt.Stringer:
		text = value.String()
	default:
		var data bytes.Buffer
		encoder := json.NewEncoder(&data)
		encoder.SetEscapeHTML(false)
		if encoder.Encode(value) != nil || json.Unmarshal(data.Bytes(), &text) != nil || text == "" {
			return strings.TrimSpace(data.String())
		}
	}
	isSpecial := func(r rune) bool { return r == '"' || r == '=' || unicode.IsSpace(r) }
	if text == "" || strings.ContainsFunc(text, isSpecial) {
		return strconv.Quote(text)
	}
	return text
}
