package facade_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
)

func TestLogForPeople(t *testing.T) {
	cases := map[string]struct {
		reason string
		log    func(log logr.Logger)
		want   string
	}{
		"message": {"the least", func(log logr.Logger) { log.Info("Hello") }, "INFO  Hello\n"},
		"object first": {"it is what one looks for",
			func(log logr.Logger) {
				log.WithValues("kind", "Widget", "namespace", "ns", "name", "w1").WithValues("handler", "fn").Info("Handled", "after", "5s")
			},
			"INFO  [ns/w1] Handled after=5s kind=Widget handler=fn\n"},
		"object without a namespace": {"clusters have such objects",
			func(log logr.Logger) { log.WithValues("name", "w1").Info("Handled") }, "INFO  [w1] Handled\n"},
		"error": {"it is a value like others", func(log logr.Logger) { log.Error(errors.New("it broke"), "Failed") }, "ERROR Failed error=\"it broke\"\n"},
		"forged lines": {"values of objects must not look like lines of ours",
			func(log logr.Logger) { log.Info("Got", "value", "x\n2024-01-01 INFO forged", "key with=signs", 1) },
			"INFO  Got value=\"x\\n2024-01-01 INFO forged\" \"key with=signs\"=1\n"},
		"values": {"each in its shortest form",
			func(log logr.Logger) {
				log.Info("Got", "text", "a b", "empty", "", "reason", cause.Create, "n", 1, "tree", map[string]any{"a": []int{1}}, "nil", nil)
			},
			"INFO  Got text=\"a b\" empty=\"\" reason=create n=1 tree={\"a\":[1]} nil=null\n"},
		"stack": {"nobody can read one on a line", func(log logr.Logger) { log.Error(nil, "Panicked", "stack", "one\n\ttwo\n", "n", 1) },
			"ERROR Panicked n=1\n\tone\n\t\ttwo\n"},
		"named logger": {"the operator's own name is in every line, so it says nothing",
			func(log logr.Logger) { log.WithName("test.example.org").WithName("backup").Info("Done") }, "INFO  Done logger=backup\n"},
		"verbose message": {"not asked for", func(log logr.Logger) { log.V(1).Info("Thinking") }, ""},
	}
	stamp := regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} `)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var full, plain bytes.Buffer
			c.log(facade.NewLogger(&full, "full", "test.example.org"))
			c.log(facade.NewLogger(&plain, "plain", "test.example.org"))
			if d := cmp.Diff(c.want, stamp.ReplaceAllString(full.String(), "")); d != "" {
				t.Errorf("%s\nfull: -want, +got:\n%s", c.reason, d)
			}
			want := c.want
			if len(want) > 6 {
				want = want[6:] // the level
			}
			if d := cmp.Diff(want, plain.String()); d != "" {
				t.Errorf("%s\nplain: -want, +got:\n%s", c.reason, d)
			}
		})
	}
}

func TestLogForMachines(t *testing.T) {
	var out bytes.Buffer
	facade.NewLogger(&out, "json", "test.example.org").WithValues("namespace", "ns").Error(errors.New("it broke"), "Failed\nbadly", "n", 1)
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	if stamp, ok := got["timestamp"].(string); !ok || !strings.HasSuffix(stamp, "Z") {
		t.Errorf("no time in UTC: %v", got["timestamp"])
	}
	delete(got, "timestamp")
	want := map[string]any{"severity": "error", "message": "Failed\nbadly", "namespace": "ns", "n": 1.0, "error": "it broke"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
	if strings.Count(out.String(), "\n") != 1 {
		t.Errorf("more than a line: %s", out.String())
	}
}

// The logger of controller-runtime drops messages that come too often.
func TestLogDropsNothing(t *testing.T) {
	for _, format := range []string{"full", "json"} {
		var out bytes.Buffer
		log := facade.NewLogger(&out, format, "test.example.org")
		for range 500 {
			log.Info("Handler succeeded")
		}
		if got := strings.Count(out.String(), "\n"); got != 500 {
			t.Errorf("%s: %d of 500 lines", format, got)
		}
	}
}

func TestLogOfClientLibraries(t *testing.T) {
	const head = "0102 15:04:05.000000       1 file.go:1] "
	for line, want := range map[string][2]string{ // usually, and when debugging
		"I" + head + "chatter\n":  {"", "chatter\n"},
		"W" + head + "watch out":  {"Warning: watch out\n", "Warning: watch out\n"},
		"E" + head + "it [broke]": {"it [broke]\n", "it [broke]\n"},
	} {
		for i, debug := range []bool{false, true} {
			var out bytes.Buffer
			facade.WriteKlog(facade.NewLogger(&out, "plain", "test.example.org"), debug, line)
			if d := cmp.Diff(want[i], out.String()); d != "" {
				t.Errorf("debug %s: -want, +got:\n%s", fmt.Sprint(debug), d)
			}
		}
	}
}
