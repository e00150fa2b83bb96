package logkeys

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/go-logr/logr"
)

// Unique gives a logger that passes all lines on to the given one, and fails the test at its end for each line that had
// a key twice, at any level.
func Unique(t testing.TB, log logr.Logger) logr.Logger {
	t.Helper()
	seen := &duplicateKeyLines{}
	t.Cleanup(func() {
		for _, line := range seen.all() {
			t.Errorf("a log line has a key twice: %s", line)
		}
	})
	return logr.New(&sink{inner: log.GetSink(), duplicates: seen})
}

// duplicateKeyLines are the lines that had a key twice.
type duplicateKeyLines struct {
	mu    sync.Mutex
	lines []string
}

func (d *duplicateKeyLines) add(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Contains(d.lines, line) {
		d.lines = append(d.lines, line)
	}
}

func (d *duplicateKeyLines) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

type sink struct {
	inner      logr.LogSink // nil drops all lines
	duplicates *duplicateKeyLines
	keys       []string
}

var _ logr.LogSink = (*sink)(nil)

// Init is nothing: the given logger was made ready by its maker.
func (s *sink) Init(logr.RuntimeInfo) {}

// Enabled has all lines looked at.
func (s *sink) Enabled(int) bool { return true }

// Info looks at a line.
func (s *sink) Info(level int, message string, values ...any) {
	s.checkKeys(message, values)
	if s.inner != nil && s.inner.Enabled(level) {
		s.inner.Info(level, message, values...)
	}
}

// Error looks at a line, which has the error under a key of its own.
func (s *sink) Error(err error, message string, values ...any) {
	s.checkKeys(message, append([]any{"error", err}, values...))
	if s.inner != nil {
		s.inner.Error(err, message, values...)
	}
}

// WithValues takes the keys.
func (s *sink) WithValues(values ...any) logr.LogSink {
	own := &sink{inner: s.inner, duplicates: s.duplicates, keys: append(slices.Clip(s.keys), keysOf(values)...)}
	if s.inner != nil {
		own.inner = s.inner.WithValues(values...)
	}
	return own
}

// WithName passes the name on.
func (s *sink) WithName(name string) logr.LogSink {
	own := *s
	if s.inner != nil {
		own.inner = s.inner.WithName(name)
	}
	return &own
}

func (s *sink) checkKeys(message string, values []any) {
	var known []string
	for _, key := range slices.Concat(s.keys, keysOf(values)) {
		if slices.Contains(known, key) {
			s.duplicates.add(fmt.Sprintf("%s: %s", message, key))
		}
		known = append(known, key)
	}
}

func keysOf(values []any) (keys []string) {
	for i := 0; i < len(values); i += 2 {
		keys = append(keys, fmt.Sprint(values[i]))
	}
	return keys
}
