package posting

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/go-logr/logr"
)

// lineReason is the reason of events that are made of log lines, as in Kopf.
const lineReason = "Logging"

// LinePoster is a poster that can also post log lines. It is a separate type because replacing the logger costs time in
// each call of a handler, which operators without this setting should not pay.
type LinePoster struct{ *QueuePoster }

// Logger returns a logger whose lines are also posted as events about the object. The message of an event consists of
// the line, its error, and the keys and values of the call, after the extra values, which the log line already has. The
// type is Debug, Normal, Warning, Error or Fatal, depending on the level.
func (p LinePoster) Logger(log logr.Logger, body map[string]any, told ...any) logr.Logger {
	// A logger that already posts must not post each line twice.
	log = withoutPosting(log)
	if log.GetSink() == nil {
		return log
	}
	inner := log.GetSink()
	if deep, ok := inner.(logr.CallDepthLogSink); ok {
		inner = deep.WithCallDepth(1)
	}
	return log.WithSink(&sink{inner: inner, lines: &lines{poster: p.QueuePoster, body: body, extraValues: told}})
}

// withoutPosting returns the logger without posting, if it posts lines.
func withoutPosting(log logr.Logger) logr.Logger {
	posting, ok := log.GetSink().(*sink)
	if !ok {
		return log
	}
	inner := posting.inner
	// The additional depth belongs to the sink that is removed here.
	if deep, ok := inner.(logr.CallDepthLogSink); ok {
		inner = deep.WithCallDepth(-1)
	}
	return log.WithSink(inner)
}

// lines turns log lines about one object into events.
type lines struct {
	poster      *QueuePoster
	body        map[string]any
	extraValues []any
}

// postLine posts a line if its level is high enough.
func (l *lines) postLine(level slog.Level, message string, err error, keysAndValues ...any) {
	if !l.poster.Takes(level) {
		return
	}
	if err != nil {
		message += ": " + err.Error()
	}
	var details []string
	// Limit the capacity, so that append copies and concurrent calls do not share the array.
	keysAndValues = append(l.extraValues[:len(l.extraValues):len(l.extraValues)], keysAndValues...)
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		details = append(details, fmt.Sprintf("%v=%v", keysAndValues[i], keysAndValues[i+1]))
	}
	if len(details) > 0 {
		message += " (" + strings.Join(details, ", ") + ")"
	}
	l.poster.Post(context.Background(), l.body, eventTypeOf(level), lineReason, message)
}

// eventTypeOf returns the type of an event for a log level, as in Kopf.
func eventTypeOf(level slog.Level) string {
	switch {
	case level <= slog.LevelDebug:
		return "Debug"
	case level <= slog.LevelInfo:
		return "Normal"
	case level <= slog.LevelWarn:
		return "Warning"
	case level <= slog.LevelError:
		return "Error"
	default:
		return "Fatal"
	}
}
