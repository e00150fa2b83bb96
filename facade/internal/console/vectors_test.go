package console_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/console"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// recordingTime is the time at which Kopf's lines were recorded.
var recordingTime = time.Date(2024, 5, 6, 7, 8, 9, 123456000, time.UTC)

// TestVectors shows that the log has the keys and texts of Kopf's log.
func TestVectors(t *testing.T) {
	local := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = local })
	vectors.Run(t, "logging", func(t *testing.T, in vectors.Fields, want vectors.Expected) {
		vectors.Known(t, in, "format", "prefix", "message", "args", "ref", "level", "name", "refkey", "extra")
		vectors.Bubble(t, func(t *testing.T) {
			time.Sleep(time.Until(recordingTime))
			format := console.Format(in.Text("format", ""))
			if !format.IsValid() {
				// D-log-format: other formats need a handler of log/slog.
				t.Skip("deviates: D-log-format")
			}
			var out bytes.Buffer
			options := console.Options{Format: format, Verbosity: console.Debug, ReferenceKey: in.Text("refkey", "")}
			if prefixed, said := in["prefix"].(bool); said {
				options.Prefix = &prefixed
			}
			logLine(console.New(&out, options), in)
			if d := cmp.Diff(want.Value, decoded(t, format, out.String())); d != "" {
				t.Errorf("-want, +got:\n%s", d)
			}
		})
	})
}

// logLine logs the message of a case at its level.
func logLine(log logr.Logger, in vectors.Fields) {
	if in["format"] == string(console.Full) {
		log = log.WithName(in.Text("name", "kopf.objects"))
	}
	if of := in.Mapping("ref"); len(of) > 0 {
		log = logging.OfKind(log, schema.FromAPIVersionAndKind(of.Text("apiVersion", ""), of.Text("kind", "")))
		key := types.NamespacedName{Namespace: of.Text("namespace", ""), Name: of.Text("name", "")}
		log = logging.OfObject(log, key, types.UID(of.Text("uid", "")))
	}
	args, _ := in["args"].([]any)
	message := in.Text("message", "")
	if len(args) > 0 {
		message = fmt.Sprintf(message, args...)
	}
	var values []any
	for key, value := range in.Object("extra") {
		values = append(values, key, value)
	}
	level := slog.LevelInfo
	if of, ok := in["level"].(int64); ok { // Python's levels are 10 apart, from 10 for debugging
		level = slog.Level((of - 20) / 10 * 4)
		if of < 10 {
			level = slog.LevelDebug - 1
		}
	}
	slog.New(logr.ToSlogHandler(log)).Log(context.Background(), level, message, values...)
}

// decoded returns a line in the form of the test vectors.
func decoded(t *testing.T, format console.Format, line string) any {
	t.Helper()
	if format != console.JSON {
		return map[string]any{"text": strings.TrimSuffix(line, "\n")}
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(line), &got); err != nil {
		t.Fatalf("%v: %q", err, line)
	}
	return map[string]any{"json": got}
}
