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

	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
)

// origin is the function that logs.
type origin string

// originOf returns the function at the place of a record.
func originOf(place uintptr) origin {
	frame, _ := runtime.CallersFrames([]uintptr{place}).Next()
	return origin(frame.Function)
}

const (
	// klogs is the origin of all lines of klog, also of those that the program itself logs.
	klogs = "k8s.io/client-go/"
	// The API server warns about deprecated and dropped fields by this logger.
	apiWarnings = "sigs.k8s.io/controller-runtime/pkg/log.(*KubeAPIWarningLogger)"
	// healthChecks log a failed check, which is not for debugging alone.
	healthChecks = "sigs.k8s.io/controller-runtime/pkg/healthz."
)

var (
	// libraries are the packages whose infos are for debugging.
	libraries = []string{"sigs.k8s.io/controller-runtime/", "k8s.io/client-go/", "k8s.io/apimachinery/"}
	// warns is how messages of libraries begin that are warnings, as logr has no level for them.
	warns = []string{"warning:", "warn:"}
)

func hasAnyPrefix(text string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(text, prefix) })
}

// level is the level of an info for this program. Libraries mark warnings by the beginning of the message; their other
// infos are for their own developers.
func (o origin) level(of slog.Level, message string) slog.Level {
	switch {
	case !hasAnyPrefix(string(o), libraries...) || hasAnyPrefix(string(o), healthChecks):
		return of
	case of >= slog.LevelInfo &&
		(hasAnyPrefix(string(o), apiWarnings) || hasAnyPrefix(strings.ToLower(message), warns...)):
		return slog.LevelWarn
	default:
		return ofLibraries(of)
	}
}

// readable are the values of a line. Those of controller-runtime's health checks are in fields that JSON leaves out.
func (o origin) readable(keysAndValues []any) []any {
	if !hasAnyPrefix(string(o), healthChecks) {
		return keysAndValues
	}
	texts := slices.Clone(keysAndValues)
	for i := 1; i < len(texts); i += 2 {
		if reflect.ValueOf(texts[i]).Kind() == reflect.Slice {
			texts[i] = fmt.Sprintf("%+v", texts[i])
		}
	}
	return texts
}

// ofLibraries is below all levels of operators: a level of theirs is one of Debug at most.
func ofLibraries(level slog.Level) slog.Level { return min(level, slog.LevelInfo) + 2*slog.LevelDebug }

// klogOnce guards the logger of the client libraries: they read it without a lock.
var klogOnce sync.Once

// ForwardKlog makes the client libraries log to log, under the name "kubernetes": warnings and errors always,
// everything when debugging. They have one logger for the whole process, so only the first call takes effect.
func ForwardKlog(log logr.Logger, debug bool) {
	klogOnce.Do(func() {
		log := log.WithName("kubernetes")
		if own, ok := log.GetSink().(*sink); ok {
			log = log.WithSink(own.with(func(derived *sink) { derived.origin = klogs }))
		}
		if debug {
			var level klog.Level
			_ = level.Set("4") // it only fails for what is no number
		}
		klog.SetLoggerWithOptions(log, klog.WriteKlogBuffer(func(line []byte) { forwardLine(log, string(line)) }))
	})
}

// ForwardStandard makes the loggers of the standard library log to log. One of them is that of net/http, for TLS
// handshakes that fail. It has no effect if the program has set them up before.
func ForwardStandard(log logr.Logger) {
	unset := fmt.Sprintf("%T", slog.Default().Handler()) == "*slog.defaultHandler"
	if unset && stdlog.Writer() == os.Stderr {
		slog.SetDefault(slog.New(logr.ToSlogHandler(log)))
	}
}

// forwardLine parses a line such as "W0102 15:04:05.000000 1 file.go:1] message", and logs its message.
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
