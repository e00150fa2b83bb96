package mistakes_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
)

// handlerLog records the log lines of handlers as users read them: the message, the error, and the values other than
// the object and the attempt.
type handlerLog struct {
	mu     *sync.Mutex
	lines  *strings.Builder
	values []any
}

func newHandlerLog() handlerLog { return handlerLog{mu: &sync.Mutex{}, lines: &strings.Builder{}} }

var _ logr.LogSink = handlerLog{}

// Init needs nothing.
func (handlerLog) Init(logr.RuntimeInfo) {}

// Enabled leaves out debug lines.
func (handlerLog) Enabled(level int) bool { return level == 0 }

// Info keeps a line.
func (t handlerLog) Info(_ int, message string, values ...any) { t.addLine(message, values) }

// Error keeps a line.
func (t handlerLog) Error(err error, message string, values ...any) {
	t.addLine(fmt.Sprintf("%s: %v", message, err), values)
}

// WithValues remembers them.
func (t handlerLog) WithValues(values ...any) logr.LogSink {
	t.values = slices.Concat(t.values, values)
	return t
}

// WithName needs no name.
func (t handlerLog) WithName(string) logr.LogSink { return t }

// commonKeys are the keys of every line, and the stack, which is another one on every machine.
var commonKeys = []string{"kind", "namespace", "name", "handler", "reason", "attempt", "stack"}

func (t handlerLog) addLine(message string, values []any) {
	if !slices.Contains(t.values, any("handler")) || message == "Handler succeeded" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines.WriteString(message)
	for i := 0; i+1 < len(values); i += 2 {
		if key := fmt.Sprint(values[i]); !slices.Contains(commonKeys, key) {
			fmt.Fprintf(t.lines, " %s=%v", key, values[i+1])
		}
	}
	t.lines.WriteString("\n")
}
