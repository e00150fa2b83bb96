package console

import (
	"cmp"
	"io"
	"log/slog"
	"sync"

	"github.com/go-logr/logr"

	"github.com/kopf-runtime/kopf-runtime/internal/panics"
)

// Format selects the form of log lines.
type Format string

// The formats. Kopf has the same.
const (
	// Full is for people: time, logger, level, object, message and values.
	Full Format = "full"
	// Plain is for people: object, message and values.
	Plain Format = "plain"
	// JSON is for machines: one object per line, with Kopf's names for time, level, message and object.
	JSON Format = "json"
)

// IsValid reports whether the format exists.
func (f Format) IsValid() bool { return f == Full || f == Plain || f == JSON }

// Verbosity is the lowest level that is logged.
type Verbosity = slog.Level

// The verbosities, from the least to the most.
const (
	// Quiet logs warnings and errors.
	Quiet Verbosity = slog.LevelWarn
	// Normal also logs what happens to objects.
	Normal Verbosity = slog.LevelInfo
	// Verbose also logs decisions and their reasons.
	Verbose Verbosity = slog.LevelDebug
	// Debug logs everything: all levels of libraries up to V(5), which are mapped below the levels of operators.
	Debug = libraryOffset - 5
)

// Options configure a logger.
type Options struct {
	// Format is one of the formats. The default is Full.
	Format Format
	// Verbosity is Normal by default.
	Verbosity Verbosity
	// Operator is the name of the operator. The names of all its loggers begin with it, so lines for people omit it
	// where a more specific name is available.
	Operator string
	// ReferenceKey is the key of the object reference in JSON lines. The default is "object".
	ReferenceKey string
	// Prefix adds the object in front of messages. By default (nil), only lines for people have it.
	Prefix *bool
	// Colours highlights the levels in lines for people: see [OnTerminal].
	Colours bool
}

// New returns a logger that writes each line to out by one call of Write.
func New(out io.Writer, o Options) logr.Logger {
	if o.Prefix == nil {
		prefixed := o.Format != JSON
		o.Prefix = &prefixed
	}
	compose := o.composeText
	if o.Format == JSON {
		// An empty key means the default, as in Kopf.
		o.ReferenceKey = cmp.Or(o.ReferenceKey, "object")
		compose = o.composeJSON
	}
	return logr.New(&sink{handler: &lineHandler{out: &lockedWriter{out: out}, level: o.Verbosity, compose: compose}})
}

// NewForHandler returns a logger that passes all records to a handler of the program. The handler decides on levels and
// form. Only decisions that the handler cannot make are made here: with Quiet, it gets only warnings and errors, and it
// gets messages of the libraries about themselves only with Debug. All levels below Info become Debug.
//
// If the handler fails or panics, the first failure is logged to out. The handler must not block, because it runs on
// the goroutine of the caller.
func NewForHandler(handler slog.Handler, out io.Writer, o Options) logr.Logger {
	// The failure is logged in lines of this package, since the handler cannot log it.
	log, once := New(out, o).WithName(o.Operator), &sync.Once{}
	return logr.New(&sink{handler: &userHandler{handler: handler, verbosity: o.Verbosity, logFailure: func(err error) {
		once.Do(func() {
			log.Error(err, "Log handler of the program failed; lines of the log may be missing; logged once",
				panics.StackFields(err)...)
		})
	}}})
}
