package console

import (
	"io"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	uberzap "go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// Format says what a line of the log looks like.
type Format string

// The formats.
const (
	// Full is for people: time, level, message and values.
	Full Format = "full"
	// Plain is for people: message and values.
	Plain Format = "plain"
	// JSON is for machines: one object a line, with Kopf's names for time, level and message.
	JSON Format = "json"
)

// Valid tells whether there is such a format.
func (f Format) Valid() bool { return f == Full || f == Plain || f == JSON }

// Verbosity says how much is logged.
type Verbosity int

// The verbosities, from the least to the most.
const (
	// Quiet logs errors alone.
	Quiet Verbosity = iota - 1
	// Normal logs what happens to objects: errors and infos.
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
	// Operator is the name of the operator. All its loggers begin with it, so no line shows it.
	Operator string
}

// everything is below all levels of logr, which are negative ones of zap.
const everything = zapcore.Level(-127)

// level is the lowest level that is logged. Libraries go deeper than one level, operators do not.
func (v Verbosity) level() zapcore.Level {
	switch v {
	case Quiet:
		return zapcore.WarnLevel
	case Verbose:
		return zapcore.Level(-1)
	case Debug:
		return zapcore.Level(-5)
	default:
		return zapcore.InfoLevel
	}
}

// New makes a logger that writes each message to out by one call.
func New(out io.Writer, o Options) logr.Logger {
	wrapped := func(wrap func(zapcore.Core) zapcore.Core) zap.Opts { return zap.RawZapOpts(uberzap.WrapCore(wrap)) }
	options := []zap.Opts{
		// At its usual level the logger drops repeated messages, but the outcome of every handler is worth its line.
		zap.Level(everything), zap.RawZapOpts(uberzap.IncreaseLevel(o.Verbosity.level())),
		// An error of a handler is no accident of this program: its stack would say nothing.
		zap.StacktraceLevel(zapcore.FatalLevel),
	}
	if o.Format == JSON {
		keys := wrapped(func(core zapcore.Core) zapcore.Core {
			return reservedKeys{core: core, taken: []string{"timestamp", "severity", "message", "logger"}}
		})
		encoding := []zap.Opts{keys, zap.WriteTo(jsonWriter{out}), zap.JSONEncoder(kopfNames)}
		return zap.New(append(encoding, options...)...)
	}
	core := &lineCore{
		out: zapcore.Lock(zapcore.AddSync(out)), plain: o.Format == Plain, operator: o.Operator,
	}
	keys := wrapped(func(zapcore.Core) zapcore.Core { return reservedKeys{core: core, taken: []string{"logger"}} })
	return zap.New(append([]zap.Opts{keys, zap.WriteTo(out)}, options...)...)
}

// kopfNames has JSON lines use the keys and the time of Kopf's.
func kopfNames(c *zapcore.EncoderConfig) {
	c.TimeKey, c.LevelKey, c.MessageKey, c.NameKey = "timestamp", "severity", "message", "logger"
	c.CallerKey, c.StacktraceKey = "", ""
	c.EncodeDuration = zapcore.StringDurationEncoder
	c.EncodeTime = func(t time.Time, to zapcore.PrimitiveArrayEncoder) {
		to.AppendString(t.UTC().Format("2006-01-02T15:04:05.000000Z07:00"))
	}
	c.EncodeLevel = func(level zapcore.Level, to zapcore.PrimitiveArrayEncoder) { to.AppendString(severity(level)) }
}

// severity is one word, however deep the level is.
func severity(level zapcore.Level) string {
	if level < zapcore.DebugLevel {
		level = zapcore.DebugLevel
	}
	return level.String()
}

// klogOnce guards the logger of the client libraries: they read it without a lock.
var klogOnce sync.Once

// ForwardKlog makes the client libraries log to log, under the name "kubernetes": warnings and errors always,
// everything when debugging. They have one logger for the whole process, so only the first call takes effect.
func ForwardKlog(log logr.Logger, debug bool) {
	klogOnce.Do(func() {
		log := log.WithName("kubernetes")
		structured := log
		if debug {
			var level klog.Level
			_ = level.Set("4") // it only fails for what is no number
		} else {
			structured = errorsOnly(log)
		}
		klog.SetLoggerWithOptions(structured, klog.WriteKlogBuffer(func(line []byte) {
			forwardLine(log, debug, string(line))
		}))
	})
}

// forwardLine parses a line such as "W0102 15:04:05.000000 1 file.go:1] message", and logs its message. A logr.Logger
// has no level for warnings, so they are infos that begin with "Warning".
func forwardLine(log logr.Logger, debug bool, line string) {
	head, message, _ := strings.Cut(strings.TrimSpace(line), "] ")
	switch {
	case strings.HasPrefix(head, "E"), strings.HasPrefix(head, "F"):
		log.Error(nil, message)
	case strings.HasPrefix(head, "W"):
		log.Info("Warning: " + message)
	case debug:
		log.Info(message)
	}
}

// errorsOnly is a logger that drops all messages but errors.
func errorsOnly(log logr.Logger) logr.Logger { return log.V(-int(everything) + 1) }
