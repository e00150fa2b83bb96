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

// passing are functions that log for others.
var passing = []string{
	"github.com/kopf-runtime/kopf-runtime/facade/internal/console.(*sink)",
	"github.com/kopf-runtime/kopf-runtime/facade/internal/console.caller",
	"github.com/kopf-runtime/kopf-runtime/facade/internal/console.forward",
	"github.com/kopf-runtime/kopf-runtime/facade/internal/console.ForwardKlog",
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging.",
	"github.com/go-logr/logr.",
	"sigs.k8s.io/controller-runtime/pkg/log.(*delegatingLogSink)",
}

// klogs are the functions of klog. Whoever logs by it, is a library.
var klogs = []string{"k8s.io/klog/v2.", "k8s.io/klog/v2/"}

// caller finds who logs. The place in a record does not tell: the logger of controller-runtime has functions of its own
// between the two.
func caller() origin {
	var places [24]uintptr
	frames := runtime.CallersFrames(places[:runtime.Callers(2, places[:])])
	for {
		frame, more := frames.Next()
		switch {
		case hasAnyPrefix(frame.Function, klogs):
			return origin(libraries[0])
		case !hasAnyPrefix(frame.Function, passing):
			return origin(frame.Function)
		}
		if !more {
			return ""
		}
	}
}

func hasAnyPrefix(text string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}

// Whose infos are for debugging, and whose are not.
var (
	libraries = []string{"sigs.k8s.io/controller-runtime/", "k8s.io/client-go/", "k8s.io/apimachinery/"}
	// The API server warns of what is deprecated or dropped, and a failed health check is worth its line.
	warning = []string{
		"sigs.k8s.io/controller-runtime/pkg/log.(*KubeAPIWarningLogger)", "k8s.io/client-go/rest.WarningLogger",
	}
	telling = []string{"sigs.k8s.io/controller-runtime/pkg/healthz."}
	// warns is how messages of libraries begin that are warnings, as logr has no level for them.
	warns = []string{"warning:", "warn:"}
)

// level is that of a message that is none of an error. Libraries warn by the beginning of a message; what else they
// have to say, is for their own developers.
func (o origin) level(of slog.Level, message string) slog.Level {
	switch {
	case !hasAnyPrefix(string(o), libraries) || hasAnyPrefix(string(o), telling):
		return of
	case of >= slog.LevelInfo && (hasAnyPrefix(string(o), warning) || hasAnyPrefix(strings.ToLower(message), warns)):
		return slog.LevelWarn
	default:
		return ofLibraries(of)
	}
}

// readable are the values of a line. Those of controller-runtime's health checks are in fields that JSON leaves out.
func (o origin) readable(keysAndValues []any) []any {
	if !hasAnyPrefix(string(o), telling) {
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
