package console_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/console"
)

// word is a string of a type of its own, such as a reason.
type word string

// newLogger is a logger of a format at the usual level.
func newLogger(out io.Writer, format console.Format) logr.Logger {
	return console.New(out, console.Options{Format: format, Operator: "test.example.org"})
}

func TestLogForPeople(t *testing.T) {
	cases := map[string]struct {
		reason string
		log    func(log logr.Logger)
		want   string
	}{
		"message": {"the least", func(log logr.Logger) { log.Info("Hello") }, "Hello\n"},
		"object first": {"it is what one looks for",
			func(log logr.Logger) {
				log.WithValues(
					"kind", "Widget", "namespace", "ns", "name", "w1",
				).WithValues("handler", "fn").Info("Handled", "after", "5s")
			},
			"[ns/w1] Handled after=5s handler=fn\n"},
		"object without a namespace": {"clusters have such objects",
			func(log logr.Logger) { log.WithValues("name", "w1").Info("Handled") }, "[w1] Handled\n"},
		"error": {
			"it is a value like others", func(log logr.Logger) { log.Error(errors.New("it broke"), "Failed") },
			"Failed error=\"it broke\"\n",
		},
		"forged lines": {"values of objects must not look like lines of ours",
			func(log logr.Logger) { log.Info("Got", "value", "x\n2024-01-01 INFO forged", "key with=signs", 1) },
			"Got value=\"x\\n2024-01-01 INFO forged\" \"key with=signs\"=1\n"},
		"values": {"each in its shortest form",
			func(log logr.Logger) {
				log.Info(
					"Got", "text", "a b", "empty", "", "reason", word("create"), "n", 1, "tree",
					map[string]any{"a": []int{1}}, "nil", nil, "ratio", math.NaN(),
				)
			},
			"Got text=\"a b\" empty=\"\" reason=create n=1 tree={\"a\":[1]} nil=null ratio=NaN\n"},
		"values of HTML": {"differences and errors have such signs, and a log is no page",
			func(log logr.Logger) { log.Info("Got", "changes", []string{"spec.nodes: 2 -> 3 & <b>"}) },
			"Got changes=[\"spec.nodes: 2 -> 3 & <b>\"]\n"},
		"stack": {"nobody can read one on a line", func(log logr.Logger) {
			log.Error(nil, "Panicked", "stack", "one\n\ttwo\n", "n", 1)
		},
			"Panicked n=1\n\tone\n\t\ttwo\n"},
		"odd identity": {"some kinds may have any names, also those that look like the end of an identity",
			func(log logr.Logger) { log.WithValues("name", "a] [kube-system/b\x1b[2J").Info("Handled") },
			"[\"a] [kube-system/b\\x1b[2J\"] Handled\n"},
		"identity is the framework's": {"what comes later is the handler's own word",
			func(log logr.Logger) {
				log = log.WithValues("kind", "Widget", "namespace", "ns", "name", "w1", "handler", "fn", "attempt", 1)
				log.WithValues("name", "w2", "handler", "other").Info("Got", "namespace", "kube-system", "attempt", 9)
			},
			"[ns/w1] Got extra.namespace=kube-system extra.attempt=9 " +
				"handler=fn attempt=1 extra.name=w2 extra.handler=other\n"},
		"identity without a namespace is the framework's": {"an empty namespace is one",
			func(log logr.Logger) {
				log.WithValues("namespace", "", "name", "w1").Info("Got", "namespace", "kube-system", "name", "w2")
			},
			"[w1] Got extra.namespace=kube-system extra.name=w2\n"},
		"message with control characters": {"terminals obey them",
			func(log logr.Logger) { log.Info("a\rb\x1b[31m\u009b2J\u202ec\u2028d\x85e\x7f\x00\xff\u200b\u2066") },
			"a\\rb\\x1b[31m\\u009b2J\\u202ec\\u2028d\\x85e\\x7f\\x00\\xff\\u200b\\u2066\n"},
		"message of many lines": {"none of them may look like the beginning of another message",
			func(log logr.Logger) { log.Info("one\n2024-01-01 INFO two\n\tthree\r\nfour") },
			"one\n\t2024-01-01 INFO two\n\t\tthree\n\tfour\n"},
		"stack with control characters": {"it may be anybody's value",
			func(log logr.Logger) { log.Error(nil, "Panicked", "stack", "one\x1b[2J\r\n2024-01-01\rtwo\u2029three") },
			"Panicked\n\tone\\x1b[2J\n\t2024-01-01\\rtwo\\u2029three\n"},
		"values with control characters": {"however deep",
			func(log logr.Logger) {
				log.Info(
					"Got", "bytes", "a\xffb", "tree", map[string]any{"a\u202e": "\x7f\u009b\u2066\U000e0041\x1b"},
					"key\u202e\x9b", 1,
				)
			},
			`Got bytes="a\xffb" tree={"a\u202e":"\u007f\u009b\u2066\udb40\udc41\u001b"} "key\u202e\x9b"=1` +
				"\n"},
		"letters of all kinds": {"are no danger",
			func(log logr.Logger) {
				log.WithValues("name", "größe").Info("über", "value", "日本", "tree", []string{"é"})
			},
			"[größe] über value=日本 tree=[\"é\"]\n"},
		"verbose message": {"not asked for", func(log logr.Logger) { log.V(1).Info("Thinking") }, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var full, plain bytes.Buffer
			c.log(newLogger(&full, console.Full))
			c.log(newLogger(&plain, console.Plain))
			if d := cmp.Diff(c.want, plain.String()); d != "" {
				t.Errorf("%s\nplain: -want, +got:\n%s", c.reason, d)
			}
			if d := cmp.Diff(c.want, head.ReplaceAllString(full.String(), "")); d != "" {
				t.Errorf("%s\nfull: -want, +got:\n%s", c.reason, d)
			}
		})
	}
}

// head is what the format "full" has in front of what "plain" has.
var head = regexp.MustCompile(`(?m)^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] (.{20}) \[[A-Z]+ *\] `)

func TestNamesOfLoggers(t *testing.T) {
	const operator = "test.example.org"
	cases := map[string]struct {
		reason string
		log    func(log logr.Logger) logr.Logger
		want   string
	}{
		"operator": {"it is what speaks",
			func(log logr.Logger) logr.Logger { return log.WithName(operator) }, "test.example.org"},
		"object": {"as in Kopf",
			func(log logr.Logger) logr.Logger { return log.WithName(operator).WithValues("name", "w1") },
			"kopf.objects"},
		"own name": {"it says more",
			func(log logr.Logger) logr.Logger {
				return log.WithName(operator).WithName("backup").WithValues("name", "w1")
			},
			"backup"},
		"activity": {"as in Kopf",
			func(log logr.Logger) logr.Logger { return log.WithName(operator).WithValues("activity", "cleanup") },
			"kopf.activities.clea"},
		"forged": {"it may be made of the name of an object",
			func(log logr.Logger) logr.Logger { return log.WithName(operator).WithName("a\nb c\x1b[0m") },
			`a\nb c\x1b[0m`},
		"alike": {"it only begins like the operator's",
			func(log logr.Logger) logr.Logger { return log.WithName(operator + "x") }, "test.example.orgx"},
		"long": {"the column has an end",
			func(log logr.Logger) logr.Logger { return log.WithName("a.very.long.name.of.a.logger") },
			"a.very.long.name.of."},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			c.log(newLogger(&out, console.Full)).Info("Done")
			found := head.FindStringSubmatch(out.String())
			if found == nil || strings.TrimSpace(found[1]) != c.want {
				t.Errorf("%s: want %q, got %q", c.reason, c.want, out.String())
			}
		})
	}
}

func TestLogForMachines(t *testing.T) {
	var out bytes.Buffer
	newLogger(&out, console.JSON).WithValues("namespace", "ns").Error(
		errors.New("it broke"), "Failed\nbadly", "n", 1,
	)
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	if stamp, ok := got["timestamp"].(string); !ok || !strings.HasSuffix(stamp, "+00:00") {
		t.Errorf("no time in UTC: %v", got["timestamp"])
	}
	delete(got, "timestamp")
	want := map[string]any{
		"severity": "error", "message": "Failed\nbadly", "namespace": "ns", "n": 1.0, "error": "it broke",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
	if strings.Count(out.String(), "\n") != 1 {
		t.Errorf("more than a line: %s", out.String())
	}
}

// What machines read, people look at in terminals; and a key that stands twice is read as the last one.
func TestLogForMachinesCannotBeForged(t *testing.T) {
	var out bytes.Buffer
	log := newLogger(&out, console.JSON).WithValues(
		"namespace", "ns", "name", "w1", "handler", "fn",
	)
	log.WithValues(
		"name", "w2",
	).WithName("a\u202eb").Info("a\u009b2J\u202e\x7fé\U000e0041", "handler", "other", "severity", "error",
		"message", "forged", "timestamp", "never", "logger", "none", "tree", map[string]any{"a\u2066": "\x7f\n"},
		"key\u202e", "\xff")
	line := out.String()
	if strings.Count(line, "\n") != 1 || strings.ContainsFunc(
		strings.TrimSuffix(line, "\n"), func(r rune) bool { return !unicode.IsPrint(r) },
	) {
		t.Errorf("what a terminal would obey: %q", line)
	}
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	delete(got, "timestamp")
	want := map[string]any{
		"severity": "info", "message": "a\u009b2J\u202e\x7fé\U000e0041", "logger": "a\u202eb", "handler": "fn",
		"object":     map[string]any{"apiVersion": nil, "kind": nil, "name": "w1", "uid": nil, "namespace": "ns"},
		"extra.name": "w2", "extra.handler": "other", "extra.severity": "error", "extra.message": "forged",
		"extra.timestamp": "never",
		"extra.logger":    "none", "tree": map[string]any{"a\u2066": "\x7f\n"}, "key\u202e": "\ufffd",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
	for _, key := range []string{"object", "handler", "severity", "message", "timestamp", "logger"} {
		if n := strings.Count(line, `"`+key+`":`); n != 1 {
			t.Errorf("%q stands %d times in %s", key, n, line)
		}
	}
}

// evil panics whatever it is asked.
type evil struct{ err error }

func (e *evil) Error() string                { return e.err.Error() }
func (e *evil) String() string               { return e.err.Error() }
func (e *evil) MarshalJSON() ([]byte, error) { return []byte(e.err.Error()), nil }
func (e *evil) MarshalLog() any              { return e.err.Error() }
func (e *evil) Format(fmt.State, rune)       { _ = e.err.Error() }

type textual struct{ *evil }

func (t textual) String() string { return t.err.Error() }

func TestLogSurvivesValuesThatPanic(t *testing.T) {
	bad := &evil{}
	for _, format := range []console.Format{console.Full, console.Plain, console.JSON} {
		var out bytes.Buffer
		log := newLogger(&out, format)
		for name, value := range map[string]any{
			"error": bad, "nil": (*evil)(nil), "stringer": textual{bad}, "list": []any{bad},
			"mapping": map[string]any{"a": bad},
			"cause":   errors.Join(errors.New("fine"), bad),
		} {
			log.Info("Value "+name, "v", value)
			log.WithValues("w", value).Info("Bound " + name)
		}
		log.Error(bad, "Error of its own")
		log.Error((*evil)(nil), "Typed nil")
		if got := strings.Count(out.String(), "\n"); got != 14 {
			t.Errorf("%s: %d of 14 lines: %s", format, got, out.String())
		}
	}
}

// The logger of controller-runtime drops messages that come too often.
func TestLogDropsNothing(t *testing.T) {
	for _, format := range []console.Format{console.Full, console.JSON} {
		var out bytes.Buffer
		log := newLogger(&out, format)
		for range 500 {
			log.Info("Handler succeeded")
		}
		if got := strings.Count(out.String(), "\n"); got != 500 {
			t.Errorf("%s: %d of 500 lines", format, got)
		}
	}
}

func TestLogOfClientLibraries(t *testing.T) {
	const line = "0102 15:04:05.000000       1 file.go:1] "
	verbosities := []console.Verbosity{console.Quiet, console.Normal, console.Debug}
	for text, want := range map[string][3]string{
		"I" + line + "chatter\n":  {"", "", "[DEBUG   ] chatter\n"},
		"W" + line + "watch out":  {"[WARNING ] watch out\n", "[WARNING ] watch out\n", "[WARNING ] watch out\n"},
		"E" + line + "it [broke]": {"[ERROR   ] it [broke]\n", "[ERROR   ] it [broke]\n", "[ERROR   ] it [broke]\n"},
	} {
		for i, verbosity := range verbosities {
			var out bytes.Buffer
			console.ForwardLine(console.New(&out, console.Options{Verbosity: verbosity}), text)
			_, got, _ := strings.Cut(out.String(), strings.Repeat(" ", 20)+"  ")
			if d := cmp.Diff(want[i], got); d != "" {
				t.Errorf("verbosity %d: -want, +got:\n%s", verbosity, d)
			}
		}
	}
}

// Who reads a line of JSON sees the last of several values under one key only.
func TestNoKeyTwiceInALine(t *testing.T) {
	for name, log := range map[string]func(log logr.Logger){
		"in one call": func(log logr.Logger) { log.Info("Got", "a", 1, "a", 2, "a", 3) },
		"in loggers":  func(log logr.Logger) { log.WithValues("a", 1).WithValues("a", 2).Info("Got", "a", 3) },
		"own extras":  func(log logr.Logger) { log.WithValues("extra.a", 1, "a", 1).Info("Got", "a", 2, "extra.a", 3) },
		"errors":      func(log logr.Logger) { log.WithValues("error", 1).Error(errors.New("boo"), "Got", "error", 2) },
		"framework's": func(log logr.Logger) { log.WithValues("handler", "fn").Info("Got", "handler", "x") },
		"siblings": func(log logr.Logger) {
			base := log.WithValues("a", 1)
			base.WithValues("b", 1).Info("Got", "c", 1)
			base.WithValues("c", 1).Info("Got", "b", 1, "a", 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			log(newLogger(&out, console.JSON))
			for line := range strings.Lines(out.String()) {
				keys := topKeys(t, line)
				slices.Sort(keys)
				if len(slices.Compact(slices.Clone(keys))) != len(keys) || len(keys) < 5 {
					t.Errorf("keys %v in %s", keys, line)
				}
			}
		})
	}
}

// topKeys are the keys of an object in JSON, in order, with those that stand twice.
func topKeys(t *testing.T, line string) (keys []string) {
	t.Helper()
	for decoder, depth, key := json.NewDecoder(strings.NewReader(line)), 0, true; ; {
		token, err := decoder.Token()
		switch {
		case errors.Is(err, io.EOF):
			return keys
		case err != nil:
			t.Fatalf("%v: %s", err, line)
		case token == json.Delim('{'), token == json.Delim('['):
			depth++
			continue
		case token == json.Delim('}'), token == json.Delim(']'):
			depth, key = depth-1, true
			continue
		}
		if depth == 1 {
			if text, ok := token.(string); ok && key {
				keys = append(keys, text)
			}
			key = !key
		}
	}
}
