package adapters_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/posting"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// families maps the loggers of the cases to the families whose functions use them.
var families = map[string]handlers.Family{
	"object": handlers.Changing, "local": handlers.Watching, "terse": handlers.Indexing,
}

// eventClient stores the Kubernetes events that are posted about one log line.
type eventClient struct {
	client.Client

	text   string
	events []any
}

func (s *eventClient) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	event := obj.(*corev1.Event)
	if event.Message != s.text {
		return nil // a line of the chain about the handler
	}
	about := event.InvolvedObject
	s.events = append(s.events, map[string]any{
		"ref": map[string]any{
			"apiVersion": about.APIVersion, "kind": about.Kind, "name": about.Name, "uid": string(about.UID),
			"namespace": about.Namespace,
		},
		"type": event.Type, "reason": event.Reason, "message": event.Message,
	})
	return nil
}

// countingHandler is a log that accepts lines of a level and above, and counts those of the function.
type countingHandler struct {
	slog.Handler

	level slog.Level
	text  string
	lines *int
}

func (c countingHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= c.level }

func (c countingHandler) WithAttrs([]slog.Attr) slog.Handler { return c }

func (c countingHandler) Handle(_ context.Context, record slog.Record) error {
	if record.Message == c.text {
		*c.lines++
	}
	return nil
}

func TestVectorsLoggers(t *testing.T) {
	vectors.Run(t, "k8s_event_log", func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		vectors.Known(t, input, "args", "body", "level", "log_level", "logger", "message", "settings")
		vectors.Bubble(t, func(t *testing.T) {
			log := countingHandler{level: slog.LevelDebug, text: formatted(input), lines: new(int)}
			if level := vectors.Number(t, input, "log_level"); level != nil {
				log.level = levelOf(*level)
			}
			server := &eventClient{text: log.text}
			given, poster := posterOf(t, input, server)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- poster.Start(ctx) }()
			logLine(logf.IntoContext(ctx, logr.FromSlogHandler(log)), t, given, input)
			synctest.Wait()
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			got := map[string]any{"logged": int64(*log.lines), "events": append([]any{}, server.events...)}
			if d := cmp.Diff(want.Value, vectors.Normal(got, nil)); d != "" {
				t.Errorf("-want, +got:\n%s", d)
			}
		})
	})
}

// logLine lets a function of the family log the line.
func logLine(ctx context.Context, t *testing.T, poster handlers.EventPoster, input vectors.Fields) {
	a := attemptOf(func(ctx context.Context, _ *handlers.Invocation) error {
		record := slog.Record{Level: levelOf(*vectors.Number(t, input, "level")), Message: formatted(input)}
		handler := logr.ToSlogHandler(logf.FromContext(ctx))
		if !handler.Enabled(ctx, record.Level) {
			return nil
		}
		return handler.Handle(ctx, record)
	})
	a.Call.Handler.Family, a.Call.Events = families[input.Text("logger", "")], poster
	a.Call.Cause.Object = jsontext.NewFromValue(input.Object("body"))
	a.Call.Handler.Index = &handlers.IndexWork{
		Call: func(ctx context.Context, call *handlers.Invocation) (map[any]any, bool, error) {
			return nil, true, a.Call.Handler.Call(ctx, call)
		},
	}
	adapters.New(a.Call.Handler, nil).RunAttempt(ctx, a)
}

// formatted returns the text of the line.
func formatted(input vectors.Fields) string {
	return fmt.Sprintf(input.Text("message", ""), input.List("args")...)
}

// levelOf converts a level of Python: from 10 for DEBUG to 50 for CRITICAL.
func levelOf(level float64) slog.Level { return slog.Level((level - 20) / 10 * 4) }

// posterOf returns the poster of the function, and the one that must be started.
func posterOf(
	t *testing.T, input vectors.Fields, server posting.EventClient,
) (handlers.EventPoster, *posting.QueuePoster) {
	t.Helper()
	o := posting.Options{Plain: true}
	if input["settings"] == nil {
		poster := posting.New(server, o)
		return poster, poster
	}
	settings := vectors.Known(t, input["settings"], "posting.enabled", "posting.level", "posting.loggers")
	o.Loggers = settings.Flag("posting.loggers")
	if level := vectors.Number(t, settings, "posting.level"); level != nil {
		o.Level = levelOf(*level)
	}
	poster := posting.New(server, o)
	if settings["posting.enabled"] == false {
		return posting.Silent{}, poster
	}
	if o.Loggers {
		return posting.LinePoster{QueuePoster: poster}, poster
	}
	return poster, poster
}
