package logging_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/logging"
)

// text returns a logger of log/slog without times, with the file that logs.
func text(out *bytes.Buffer, level slog.Level) logr.Logger {
	return logr.FromSlogHandler(slog.NewTextHandler(out, &slog.HandlerOptions{
		Level: level, AddSource: true, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if source, ok := a.Value.Any().(*slog.Source); ok {
				return slog.String("file", source.File[strings.LastIndex(source.File, "/")+1:])
			}
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// TestWarn shows how each kind of logger writes a warning.
func TestWarn(t *testing.T) {
	cases := map[string]struct {
		reason string
		log    func(out *bytes.Buffer) logr.Logger
		want   string
	}{
		"log/slog": {
			"a logger of log/slog warns at its own level, with the caller",
			func(out *bytes.Buffer) logr.Logger { return text(out, slog.LevelWarn).WithValues("a", 1) },
			"level=WARN file=logging_test.go msg=Careful a=1 b=2\n",
		},
		"log/slog for errors": {
			"a logger of log/slog for errors omits warnings",
			func(out *bytes.Buffer) logr.Logger { return text(out, slog.LevelError) }, "",
		},
		"logr alone": {
			"a logger without warnings logs them as information", func(out *bytes.Buffer) logr.Logger {
				return funcr.New(func(_, line string) { out.WriteString(line) }, funcr.Options{}).WithValues("a", 1)
			}, `"level"=0 "msg"="Careful" "a"=1 "b"=2`,
		},
		"nothing": {"a discarding logger logs nothing", func(*bytes.Buffer) logr.Logger { return logr.Discard() }, ""},
		"zero":    {"a zero logger logs nothing", func(*bytes.Buffer) logr.Logger { return logr.Logger{} }, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			logging.Warn(c.log(&out), "Careful", "b", 2)
			if d := cmp.Diff(c.want, out.String()); d != "" {
				t.Errorf("%s\n-want, +got:\n%s", c.reason, d)
			}
		})
	}
}

// TestKeysOfObjects shows the keys of lines about kinds, objects and handlers. An object without a namespace has an
// empty one.
func TestKeysOfObjects(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}
	cases := map[string]struct {
		reason string
		log    func(log logr.Logger) logr.Logger
		want   string
	}{
		"kind": {"a line about a kind has its version and kind", func(log logr.Logger) logr.Logger { return log },
			" apiVersion=example.org/v1 kind=Widget\n"},
		"object": {"a line about an object has its namespace, name and uid", func(log logr.Logger) logr.Logger {
			return logging.OfObject(log, types.NamespacedName{Namespace: "ns", Name: "w1"}, "u1")
		}, " apiVersion=example.org/v1 kind=Widget namespace=ns name=w1 uid=u1\n"},
		"without a namespace": {"a line about a cluster-scoped object has an empty namespace",
			func(log logr.Logger) logr.Logger {
				return logging.OfObject(log, types.NamespacedName{Name: "w1"}, "u1")
			}, ` apiVersion=example.org/v1 kind=Widget namespace="" name=w1 uid=u1` + "\n"},
		"without a uid": {"a line about an object without a known uid omits it", func(log logr.Logger) logr.Logger {
			return logging.OfObject(log, types.NamespacedName{Namespace: "ns", Name: "w1"}, "")
		}, " apiVersion=example.org/v1 kind=Widget namespace=ns name=w1\n"},
		"handler": {"a line about a handler has its id", func(log logr.Logger) logr.Logger {
			return logging.OfHandler(log, types.NamespacedName{Namespace: "ns", Name: "w1"}, "u1", "fn")
		}, " apiVersion=example.org/v1 kind=Widget namespace=ns name=w1 uid=u1 handler=fn\n"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			c.log(logging.OfKind(text(&out, slog.LevelInfo), kind)).Info("Done")
			_, got, _ := strings.Cut(out.String(), "msg=Done")
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s\n-want, +got:\n%s", c.reason, d)
			}
		})
	}
}

// TestKeysAtOnce shows that adding the keys of kind and object in one step gives the same line.
func TestKeysAtOnce(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}
	key := types.NamespacedName{Namespace: "ns", Name: "w1"}
	for _, uid := range []types.UID{"u1", ""} {
		var apart, atOnce bytes.Buffer
		logging.OfObject(logging.OfKind(text(&apart, slog.LevelInfo), kind), key, uid).Info("Done")
		logging.OfKindAndObject(text(&atOnce, slog.LevelInfo), kind, key, uid).Info("Done")
		if d := cmp.Diff(apart.String(), atOnce.String()); d != "" {
			t.Errorf("with the uid %q: -apart, +at once:\n%s", uid, d)
		}
	}
}
