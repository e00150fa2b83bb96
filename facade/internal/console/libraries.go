package console

import (
	"fmt"
	stdlog "log"
	"log/slog"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/kopf-runtime/kopf-runtime/internal/logging"
)

// origin is the full name of the function that logs.
type origin string

// originOf returns the function at the program counter of a record.
func originOf(place uintptr) origin {
	frame, _ := runtime.CallersFrames([]uintptr{place}).Next()
	return origin(frame.Function)
}

const (
	// klogOrigin is the origin of all lines of klog, including those that the program logs by klog itself.
	klogOrigin = "k8s.io/client-go/"
	// apiWarningLogger is the logger for the API server's warnings about deprecated and dropped fields.
	apiWarningLogger = "sigs.k8s.io/controller-runtime/pkg/log.(*KubeAPIWarningLogger)"
	// healthzPackage log failed checks, which are not only for debugging.
	healthzPackage = "sigs.k8s.io/controller-runtime/pkg/healthz."
)

var (
	// libraryPackages are the packages whose infos are for debugging.
	libraryPackages = []string{"sigs.k8s.io/controller-runtime/", "k8s.io/client-go/", "k8s.io/apimachinery/"}
	// warningPrefixes are the beginnings of messages of libraries that are warnings: logr has no level for these.
	warningPrefixes = []string{"warning:", "warn:"}
)

// hasAnyPrefix reports whether the text begins with one of the prefixes.
func hasAnyPrefix(text string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(text, prefix) })
}

// programLevel returns the level of an info in this program. Libraries mark warnings by the beginning of the message.
// Their other infos are for their developers.
func (o origin) programLevel(of slog.Level, message string) slog.Level {
	switch {
	// Messages of the program and of failed health checks keep their level.
	case !hasAnyPrefix(string(o), libraryPackages...) || hasAnyPrefix(string(o), healthzPackage):
		return of
	case of >= slog.LevelInfo &&
		(hasAnyPrefix(string(o), apiWarningLogger) || hasAnyPrefix(strings.ToLower(message), warningPrefixes...)):
		return slog.LevelWarn
	default:
		return libraryLevel(of)
	}
}

// readableValues returns the values in a form that can be encoded. Health checks of controller-runtime log values in
// fields that JSON omits.
func (o origin) readableValues(keysAndValues []any) []any {
	if !hasAnyPrefix(string(o), healthzPackage) {
		return keysAndValues
	}
	// The slice belongs to the caller.
	texts := slices.Clone(keysAndValues)
	for i := 1; i < len(texts); i += 2 {
		if reflect.ValueOf(texts[i]).Kind() == reflect.Slice {
			texts[i] = fmt.Sprintf("%+v", texts[i])
		}
	}
	return texts
}

// libraryOffset is the highest level of infos of libraries.
const libraryOffset = 2 * slog.LevelDebug

// libraryLevel maps a level of a library to one below all levels of operators, so that only Debug shows it.
func libraryLevel(level slog.Level) slog.Level { return min(level, slog.LevelInfo) + libraryOffset }

// klogOnce guards the logger of the client libraries, which read it without a lock.
var klogOnce sync.Once

// ForwardKlog makes the client libraries log to log, under the name "kubernetes". Warnings and errors are always
// logged, everything only with debug. The libraries have one logger per process, so only the first call has an effect.
func ForwardKlog(log logr.Logger, debug bool) {
	klogOnce.Do(func() {
		log := log.WithName("kubernetes")
		if own, ok := log.GetSink().(*sink); ok {
			log = log.WithSink(own.modifiedCopy(func(derived *sink) { derived.origin = klogOrigin }))
		}
		if debug {
			var level klog.Level
			_ = level.Set("4") // it fails only for texts that are not numbers
		}
		klog.SetLoggerWithOptions(log, klog.WriteKlogBuffer(func(line []byte) { forwardLine(log, string(line)) }))
	})
}

// ForwardStandard makes the loggers of the standard library log to log. Net/http uses one of them for failed TLS
// handshakes. It has no effect if the program has configured these loggers before.
func ForwardStandard(log logr.Logger) {
	// The type is unexported, so its name is compared.
	unset := fmt.Sprintf("%T", slog.Default().Handler()) == "*slog.defaultHandler"
	if unset && stdlog.Writer() == os.Stderr {
		slog.SetDefault(slog.New(logr.ToSlogHandler(log)))
	}
}

// forwardLine parses a line such as "W0102 15:04:05.000000 1 file.go:1] message", and logs its message. Only the
// functions of klog without key-value pairs write such lines.
func forwardLine(log logr.Logger, line string) {
	head, message, _ := strings.Cut(strings.TrimSpace(line), "] ")
	switch {
	case strings.HasPrefix(head, "E"), strings.HasPrefix(head, "F"):
		log.Error(nil, message)
	case strings.HasPrefix(head, "W"):
		logging.Warn(log, message)
	default:
		log.V(1).Info(message)
	}
}
