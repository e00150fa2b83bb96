package console

import (
	"io"
	"log/slog"

	"github.com/go-logr/logr"
)

// Format says what a line of the log looks like.
type Format string

// The formats. Kopf has the same.
const (
	// Full is for people: time, logger, level, object, message and values.
	Full Format = "full"
	// Plain is for people: object, message and values.
	Plain Format = "plain"
	// JSON is for machines: one object a line, with Kopf's names for time, level, message and object.
	JSON Format = "json"
)

// Valid tells whether there is such a format.
func (f Format) Valid() bool { return f == Full || f == Plain || f == JSON }

// Verbosity says how much is logged.
type Verbosity int

// The verbosities, from the least to the most.
const (
	// Quiet logs warnings and errors.
	Quiet Verbosity = iota - 1
	// Normal logs what happens to objects, too.
	Normal
	// Verbose logs what is decided, too, and why.
	Verbose
	// Debug logs everything, the libraries included.
	Debug
)

// Options say how to log.
type Options struct {
	// Format is one of the formats; Full if it is empty.
	Format Format
	// Verbosity is Normal if it is not set.
	Verbosity Verbosity
	// Operator is the name of the operator. All its loggers begin with it, so no line for people shows it where it has
	// something better to show.
	Operator string
	// ReferenceKey is the key of JSON lines under which they have the object that they are about: "object" if it is
	// empty.
	ReferenceKey string
	// Prefix puts the object in front of messages. Nil is the default: in front of those for people, and not in JSON.
	Prefix *bool
	// Colours marks the levels of lines for people: see [OnTerminal].
	Colours bool
}

// level is the lowest level that is logged.
func (v Verbosity) level() slog.Level {
	switch v {
	case Quiet:
		return slog.LevelWarn
	case Verbose:
		return slog.LevelDebug
	case Debug:
		return ofLibraries(-5)
	default:
		return slog.LevelInfo
	}
}

// New makes a logger that writes each message to out by one call.
func New(out io.Writer, o Options) logr.Logger {
	lines := &lineHandler{out: &lockedWriter{out: out}, level: o.Verbosity.level(), compose: o.composer()}
	return logr.New(&sink{lines: lines})
}

// composer is the function for the format.
func (o Options) composer() func(*line) []byte {
	prefixed := o.Format != JSON
	if o.Prefix != nil {
		prefixed = *o.Prefix
	}
	if o.Format == JSON {
		key := o.ReferenceKey
		if key == "" {
			key = "object"
		}
		return jsonFormat{referenceKey: key, prefixed: prefixed}.compose
	}
	return textFormat{plain: o.Format == Plain, prefixed: prefixed, colours: o.Colours, operator: o.Operator}.compose
}

// NewFor makes a logger that passes everything on to a handler of the program, which decides on its own what it wants
// and what it looks like. Only what the handler cannot know is decided here: with Quiet, it gets warnings and errors
// alone, and what the libraries below say to themselves only with Debug. All levels below Info become Debug.
//
// The handler may fail, or panic: out is told the first time. It must not block, as whoever logs waits for it.
func NewFor(handler slog.Handler, out io.Writer, o Options) logr.Logger {
	failures := &failures{log: New(out, o).WithName(o.Operator)}
	return logr.New(&sink{lines: &ownHandler{to: handler, verbosity: o.Verbosity, failures: failures}})
}
