package posting

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/go-logr/logr"
)

// lineReason is the reason of events that are lines of a log.
const lineReason = "Logging"

// LinePoster is a poster that posts the lines of logs, too. It is another type because it stands in the way of each
// call of a handler.
type LinePoster struct {
	// Poster is what posts.
	Poster *Poster
}

// Post implements handlers.Poster.
func (p LinePoster) Post(ctx context.Context, body map[string]any, eventType, reason, message string) {
	p.Poster.Post(ctx, body, eventType, reason, message)
}

// Takes implements handlers.Poster.
func (p LinePoster) Takes(level slog.Level) bool { return p.Poster.Takes(level) }

// Logger gives a logger of which the lines are posted as events about the object, too. Their message
// is that of the line, its error, and the keys and values of the call and of told, of which the log knows already. The
// type is Debug, Normal, Warning, Error or Fatal, by the level.
func (p LinePoster) Logger(log logr.Logger, body map[string]any, told ...any) logr.Logger {
	log = unposted(log)
	if log.GetSink() == nil {
		return log
	}
	inner := log.GetSink()
	if deep, ok := inner.(logr.CallDepthLogSink); ok {
		inner = deep.WithCallDepth(1)
	}
	return log.WithSink(&sink{inner: inner, lines: &lines{poster: p.Poster, body: body, told: told}})
}

// unposted is the logger with the same lines, of which none is posted.
func unposted(log logr.Logger) logr.Logger {
	posting, ok := log.GetSink().(*sink)
	if !ok {
		return log
	}
	inner := posting.inner
	if deep, ok := inner.(logr.CallDepthLogSink); ok {
		inner = deep.WithCallDepth(-1)
	}
	return log.WithSink(inner)
}

// lines makes events of lines about one object.
type lines struct {
	poster *Poster
	body   map[string]any
	told   []any
}

// post posts a line, if it is to be.
func (l *lines) post(level slog.Level, message string, err error, keysAndValues ...any) {
	if !l.poster.Takes(level) {
		return
	}
	if err != nil {
		message += ": " + err.Error()
	}
	var details []string
	keysAndValues = append(l.told[:len(l.told):len(l.told)], keysAndValues...)
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		details = append(details, fmt.Sprintf("%v=%v", keysAndValues[i], keysAndValues[i+1]))
	}
	if len(details) > 0 {
		message += " (" + strings.Join(details, ", ") + ")"
	}
	l.poster.Post(context.Background(), l.body, typeOf(level), lineReason, message)
}

func typeOf(level slog.Level) string {
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
