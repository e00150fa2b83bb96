package facade

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

// logging is how to log.
type logging struct {
	format string
	level  zapcore.Level
	own    string // the operator's name: all its lines have it, so none shows it
}

// The levels of logr are negative ones of zap. Libraries go deeper than one level, operators do not.
const (
	verboseLevel = zapcore.Level(-1)
	debugLevel   = zapcore.Level(-5)
	everything   = zapcore.Level(-127)
)

func (r *runner) logging() logging {
	l := logging{format: r.format, level: zapcore.InfoLevel, own: r.op.name}
	switch {
	case r.debug:
		l.level = debugLevel
	case r.verbose:
		l.level = verboseLevel
	case r.quiet:
		l.level = zapcore.WarnLevel
	}
	return l
}

func newLogger(out io.Writer, l logging) logr.Logger {
	wrapped := func(wrap func(zapcore.Core) zapcore.Core) zap.Opts { return zap.RawZapOpts(uberzap.WrapCore(wrap)) }
	options := []zap.Opts{
		// At its usual level the logger drops repeated messages, but every handler's outcome is worth its line.
		zap.Level(everything), zap.RawZapOpts(uberzap.IncreaseLevel(l.level)),
		// An error of a handler is no accident of this program: its stack would say nothing.
		zap.StacktraceLevel(zapcore.FatalLevel),
	}
	if l.format == formatJSON {
		keys := wrapped(func(core zapcore.Core) zapcore.Core {
			return ownKeys{core: core, taken: []string{"timestamp", "severity", "message", "logger"}}
		})
		return zap.New(append([]zap.Opts{keys, zap.WriteTo(jsonLines{out}), zap.JSONEncoder(jsonNames)}, options...)...)
	}
	core := &lineCore{out: zapcore.Lock(zapcore.AddSync(out)), plain: l.format == formatPlain, own: l.own}
	keys := wrapped(func(zapcore.Core) zapcore.Core { return ownKeys{core: core, taken: []string{"logger"}} })
	return zap.New(append([]zap.Opts{keys, zap.WriteTo(out)}, options...)...)
}

// jsonNames are Kopf's names.
func jsonNames(c *zapcore.EncoderConfig) {
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

// klogSet guards the logger of the client libraries: they read it without a lock.
var klogSet sync.Once

// setKlog leads the log of the client libraries into ours: warnings and errors always, everything if debugging. They
// have one logger for the process, so the first command line that runs in it decides.
func setKlog(log logr.Logger, debug bool) {
	klogSet.Do(func() {
		log := log.WithName("kubernetes")
		structured := log
		if debug {
			var level klog.Level
			_ = level.Set("4") // it only fails for what is no number
		} else {
			structured = errorsOnly(log)
		}
		klog.SetLoggerWithOptions(structured, klog.WriteKlogBuffer(func(line []byte) {
			writeKlog(log, debug, string(line))
		}))
	})
}

// writeKlog takes apart a line such as "W0102 15:04:05.000000 1 file.go:1] message". A warning is no more than an info
// to a logr.Logger, so it says what it is.
func writeKlog(log logr.Logger, debug bool, line string) {
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

// errorsOnly is the logger without all that is no error.
func errorsOnly(log logr.Logger) logr.Logger { return log.V(-int(everything) + 1) }
