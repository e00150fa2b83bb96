package kopf_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// levelRecorder accepts events of a level and above, and records them with the references of the given objects.
type levelRecorder struct {
	level slog.Level
	posts []any
}

func (l *levelRecorder) Takes(level slog.Level) bool { return level >= l.level }

func (l *levelRecorder) Post(_ context.Context, body map[string]any, kind, reason, message string) {
	ref, metadata := map[string]any{}, vectors.Fields(body).Mapping("metadata")
	for _, key := range []string{"apiVersion", "kind"} {
		if body[key] != nil {
			ref[key] = body[key]
		}
	}
	for _, key := range []string{"namespace", "name", "uid"} {
		if metadata[key] != nil {
			ref[key] = metadata[key]
		}
	}
	l.posts = append(l.posts, map[string]any{"ref": ref, "type": kind, "reason": reason, "message": message})
}

// CustomError is an error whose type name is the reason of its event.
type CustomError struct{ text string }

func (e *CustomError) Error() string { return e.text }

// TestVectorsEventCalls shows that events are posted as Kopf posts them.
func TestVectorsEventCalls(t *testing.T) {
	vectors.Run(t, "k8s_event_call", func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		vectors.Known(t, input, "exc", "fn", "kwargs", "objs", "raised", "settings")
		said := vectors.Fields{}
		if input["kwargs"] != nil {
			said = vectors.Known(t, input["kwargs"], "message", "reason", "type")
		}
		poster := &levelRecorder{level: levelOf(t, input)}
		op := newCreationOperator(func(_ context.Context, c *Change) error {
			about, reason, message := c.EventRecorderFor(
				input["objs"],
			), said.Text(
				"reason",
				"",
			), said.Text(
				"message",
				"",
			)
			switch input["fn"] {
			case "info":
				about.Info(reason, message)
			case "warn":
				about.Warn(reason, message)
			case "event":
				about.Event(said.Text("type", ""), reason, message)
			case "exception":
				about.Exception(reason, message, errorOfCase(t, input))
			default:
				t.Fatalf("the case has an unknown function %v", input["fn"])
			}
			return nil
		})
		a := call(t, op, body(nil), nil, func(a *execution.Attempt) {
			if a.Call.Events = poster; input.Mapping("settings")["posting.enabled"] == false {
				a.Call.Events = &levelRecorder{level: 100}
			}
		})
		got := map[string]any{"events": poster.posts}
		if d := cmp.Diff(want.Value, vectors.Normal(got, nil), cmpopts.EquateEmpty()); d != "" || a.Outcome.Err != nil {
			t.Errorf("error %v; -want, +got:\n%s", a.Outcome.Err, d)
		}
	})
}

// levelOf returns the level of a case. Python's levels range from 10 for DEBUG to 50 for CRITICAL.
func levelOf(t *testing.T, input vectors.Fields) slog.Level {
	t.Helper()
	if input["settings"] == nil {
		return slog.LevelInfo
	}
	settings := vectors.Known(t, input["settings"], "posting.enabled", "posting.level", "posting.loggers")
	if level := vectors.Number(t, settings, "posting.level"); level != nil {
		return slog.Level((*level - 20) / 10 * 4)
	}
	return slog.LevelInfo
}

// errorOfCase returns the error of a case: the given one, or the one that Kopf handles at the time of the call.
func errorOfCase(t *testing.T, input vectors.Fields) error {
	t.Helper()
	for _, key := range []string{"exc", "raised"} {
		if input[key] == nil {
			continue
		}
		raise := vectors.Known(t, input[key], "raise", "message")
		switch text := raise.Text("message", ""); raise["raise"] {
		case "permanent":
			return kopf.Permanent(errors.New(text))
		case "temporary":
			return kopf.Temporary(errors.New(text), 0)
		default:
			return &CustomError{text}
		}
	}
	return nil
}

// TestReasonsOfErrors shows which reason the event of an error has.
func TestReasonsOfErrors(t *testing.T) {
	missing := apierrors.NewNotFound(corev1.Resource("pods"), "p")
	for want, err := range map[string]error{
		"NotFound": fmt.Errorf("reading the pod: %w", missing), "PathError": &fs.PathError{Err: fs.ErrNotExist},
		"Error": fmt.Errorf("creating: %w", errors.New("boo")), "CustomError": fmt.Errorf("x: %w", &CustomError{"boo"}),
		"PermanentError": kopf.Permanent(missing), "TemporaryError": kopf.Temporary(missing, 0), "Own": nil,
	} {
		got := facadetest.NewChange(&Widget{}).Call(t.Context(), func(_ context.Context, c *Change) error {
			if err == nil {
				c.Exception("Own", "no error", nil)
			} else {
				c.Exception("", "", err)
			}
			return nil
		}).Events
		if len(got) != 1 || got[0].Reason != want || got[0].Type != "Error" {
			t.Errorf("the error %v must have the reason %q: got %v", err, want, got)
		}
	}
}

// TestEventsAboutOthers shows which objects an event can be about: the same ones as the functions for children accept.
func TestEventsAboutOthers(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns2", Name: "p", UID: "uid-p"}}
	tests := map[string]struct {
		reason string
		about  []any
		want   []any
		err    string
	}{
		"Typed": {
			reason: "a typed object and a slice of them are accepted", about: []any{pod, []*corev1.Pod{pod}},
			want: []any{"v1 Pod ns2 p uid-p", "v1 Pod ns2 p uid-p"},
		},
		"Text":    {reason: "a name instead of an object is an error", about: []any{"p"}, err: "string"},
		"Nothing": {reason: "nil instead of an object is an error", about: []any{nil}, err: "is not an object"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			poster := &levelRecorder{}
			op := newCreationOperator(func(_ context.Context, c *Change) error {
				c.EventRecorderFor(tc.about...).Info("R", "m")
				return nil
			})
			kopf.Connect(op, fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build())
			a := call(t, op, body(nil), nil, func(a *execution.Attempt) { a.Call.Events = poster })
			var got []any
			for _, post := range poster.posts {
				ref := vectors.Known(t, post, "ref", "type", "reason", "message").Mapping("ref")
				got = append(got, fmt.Sprintf("%v %v %v %v %v",
					ref["apiVersion"], ref["kind"], ref["namespace"], ref["name"], ref["uid"]))
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
			failed := a.Outcome.Err != nil && strings.Contains(a.Outcome.Err.Error(), tc.err)
			if (tc.err != "") != failed {
				t.Errorf("%s: got the error %v", tc.reason, a.Outcome.Err)
			}
		})
	}
}

// TestPostingSettings shows the effect of the posting settings of an operator: D-events-counted, D-events-disabled,
// K-log-events.
func TestPostingSettings(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		settings kopf.Settings
		want     []string
	}{
		"Default": {
			reason: "by default, identical events are counted, and log lines are not posted",
			want:   []string{"3 kopf-event- test.example.org dev Warning Again: as before"},
		},
		"Disabled": {
			reason:   "Disabled posts no events, not even warnings",
			settings: kopf.Settings{Posting: kopf.PostingSettings{Disabled: true}},
		},
		"Plain": {
			reason: "Plain posts each event separately, with the configured names",
			settings: kopf.Settings{Posting: kopf.PostingSettings{
				Plain: true, EventNamePrefix: "own-", ReportingInstance: "i", ReportingComponent: "c",
			}},
			want: []string{
				"0 own- c i Warning Again: as before", "0 own- c i Warning Again: as before",
				"0 own- c i Warning Again: as before",
			},
		},
		"Sharded": {
			reason:   "with Sharding, events name the replica",
			settings: kopf.Settings{Sharding: kopf.ShardingSettings{Shards: 4}},
			want:     []string{"3 kopf-event- test.example.org pod-7 Warning Again: as before"},
		},
		"ShardedByHand": {
			reason: "a configured instance wins",
			settings: kopf.Settings{
				Sharding: kopf.ShardingSettings{Shards: 4}, Posting: kopf.PostingSettings{ReportingInstance: "i"},
			},
			want: []string{"3 kopf-event- test.example.org i Warning Again: as before"},
		},
		"Level": {
			reason: "Loggers with a level posts only the log lines of errors",
			settings: kopf.Settings{Posting: kopf.PostingSettings{
				Loggers: true, Level: slog.LevelError,
			}},
			want: []string{
				"2 kopf-event- test.example.org dev Error Logging: Handler failed temporarily; retrying: not yet " +
					"(handler=fn, after=1s)",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("POD_ID", "pod-7")
			synctest.Test(t, func(t *testing.T) {
				seen := observeObjectLife(t, tc.settings, func(widgets kopf.Selection[*Widget], _ func()) {
					widgets.OnCreate("fn", func(_ context.Context, c *Change) error {
						if c.Warn("Again", "as before"); c.Retry < 2 {
							return kopf.Temporary(fmt.Errorf("not yet"), time.Second)
						}
						return nil
					})
				})
				if d := cmp.Diff(tc.want, seen.events); d != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
				}
			})
		})
	}
}
