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

// word is a string type, such as a reason.
type word string

// newLogger returns a logger with the format at the default level.
func newLogger(out io.Writer, format console.Format) logr.Logger {
	return console.New(out, console.Options{Format: format, Operator: "test.example.org"})
}

func TestLogForPeople(t *testing.T) {
	cases := map[string]struct {
		reason string
		log    func(log logr.Logger)
		want   string
	}{
		"message": {"a message without values is logged alone", func(log logr.Logger) { log.Info("Hello") }, "Hello\n"},
		"object first": {"the object comes before the message",
			func(log logr.Logger) {
				log.WithValues(
					"kind", "Widget", "namespace", "ns", "name", "w1",
				).WithValues("handler", "fn").Info("Handled", "after", "5s")
			},
			"[ns/w1] Handled after=5s handler=fn\n"},
		"object without a namespace": {"an object without a namespace is shown by its name",
			func(log logr.Logger) { log.WithValues("name", "w1").Info("Handled") }, "[w1] Handled\n"},
		"error": {
			"an error is logged as a value", func(log logr.Logger) { log.Error(errors.New("it broke"), "Failed") },
			"Failed error=\"it broke\"\n",
		},
		"forged lines": {"line breaks in values are escaped, so a value cannot forge a line",
			func(log logr.Logger) { log.Info("Got", "value", "x\n2024-01-01 INFO forged", "key with=signs", 1) },
			"Got value=\"x\\n2024-01-01 INFO forged\" \"key with=signs\"=1\n"},
		"values": {"each value has its shortest form",
			func(log logr.Logger) {
				log.Info(
					"Got", "text", "a b", "empty", "", "reason", word("create"), "n", 1, "tree",
					map[string]any{"a": []int{1}}, "nil", nil, "ratio", math.NaN(),
				)
			},
			"Got text=\"a b\" empty=\"\" reason=create n=1 tree={\"a\":[1]} nil=null ratio=NaN\n"},
		"values of HTML": {"HTML characters are not escaped",
			func(log logr.Logger) { log.Info("Got", "changes", []string{"spec.nodes: 2 -> 3 & <b>"}) },
			"Got changes=[\"spec.nodes: 2 -> 3 & <b>\"]\n"},
		"stack": {"a stack follows the line, indented", func(log logr.Logger) {
			log.Error(nil, "Panicked", "stack", "one\n\ttwo\n", "n", 1)
		},
			"Panicked n=1\n\tone\n\t\ttwo\n"},
		"odd identity": {"an odd name is quoted, so it cannot look like the end of the identity",
			func(log logr.Logger) { log.WithValues("name", "a] [kube-system/b\x1b[2J").Info("Handled") },
			"[\"a] [kube-system/b\\x1b[2J\"] Handled\n"},
		"identity is the framework's": {"a handler cannot override the identity: its values get a prefix",
			func(log logr.Logger) {
				log = log.WithValues("kind", "Widget", "namespace", "ns", "name", "w1", "handler", "fn", "attempt", 1)
				log.WithValues("name", "w2", "handler", "other").Info("Got", "namespace", "kube-system", "attempt", 9)
			},
			"[ns/w1] Got extra.namespace=kube-system extra.attempt=9 " +
				"handler=fn attempt=1 extra.name=w2 extra.handler=other\n"},
		"identity without a namespace is the framework's": {"an empty namespace counts as part of the identity",
			func(log logr.Logger) {
				log.WithValues("namespace", "", "name", "w1").Info("Got", "namespace", "kube-system", "name", "w2")
			},
			"[w1] Got extra.namespace=kube-system extra.name=w2\n"},
		"message with control characters": {"control characters of a message are escaped",
			func(log logr.Logger) { log.Info("a\rb\x1b[31m\u009b2J\u202ec\u2028d\x85e\x7f\x00\xff\u200b\u2066") },
			"a\\rb\\x1b[31m\\u009b2J\\u202ec\\u2028d\\x85e\\x7f\\x00\\xff\\u200b\\u2066\n"},
		"message of many lines": {"the lines of a message are indented, so none looks like another entry",
			func(log logr.Logger) { log.Info("one\n2024-01-01 INFO two\n\tthree\r\nfour") },
			"one\n\t2024-01-01 INFO two\n\t\tthree\n\tfour\n"},
		"stack with control characters": {"control characters of a stack are escaped",
			func(log logr.Logger) { log.Error(nil, "Panicked", "stack", "one\x1b[2J\r\n2024-01-01\rtwo\u2029three") },
			"Panicked\n\tone\\x1b[2J\n\t2024-01-01\\rtwo\\u2029three\n"},
		"values with control characters": {"control characters of values are escaped at any depth",
			func(log logr.Logger) {
				log.Info(
					"Got", "bytes", "a\xffb", "tree", map[string]any{"a\u202e": "\x7f\u009b\u2066\U000e0041\x1b"},
					"key\u202e\x9b", 1,
				)
			},
			`Got bytes="a\xffb" tree={"a\u202e":"\u007f\u009b\u2066\udb40\udc41\u001b"} "key\u202e\x9b"=1` +
				"\n"},
		"letters of all kinds": {"letters of all languages are printed unchanged",
			func(log logr.Logger) {
				log.WithValues("name", "größe").Info("über", "value", "日本", "tree", []string{"é"})
			},
			"[größe] über value=日本 tree=[\"é\"]\n"},
		"key without a value": {"a key without a value is marked, so the mistake is visible",
			func(log logr.Logger) { log.Info("Got", []any{"n", 1, "key"}...) }, "Got n=1 !BADKEY=key\n"},
		"key that is not a text": {"a key that is not a text is marked, and its value is logged",
			func(log logr.Logger) { log.Info("Got", []any{7, "value", "n", 1}...) },
			"Got !BADKEY=7 !BADVALUE=value n=1\n"},
		"value without a key": {"a last value without a key is marked",
			func(log logr.Logger) { log.Info("Got", []any{"n", 1, 7}...) }, "Got n=1 !BADKEY=7\n"},
		"verbose message": {"a verbose message is not logged by default",
			func(log logr.Logger) { log.V(1).Info("Thinking") }, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var full, plain bytes.Buffer
			c.log(newLogger(&full, console.Full))
			c.log(newLogger(&plain, console.Plain))
			if d := cmp.Diff(c.want, plain.String()); d != "" {
				t.Errorf("%s\nplain: -want, +got:\n%s", c.reason, d)
			}
			if d := cmp.Diff(c.want, fullLinePrefix.ReplaceAllString(full.String(), "")); d != "" {
				t.Errorf("%s\nfull: -want, +got:\n%s", c.reason, d)
			}
		})
	}
}

// fullLinePrefix is the part of a line by which the format "full" differs from "plain".
var fullLinePrefix = regexp.MustCompile(`(?m)^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] (.{20}) \[[A-Z]+ *\] `)

func TestNamesOfLoggers(t *testing.T) {
	const operator = "test.example.org"
	cases := map[string]struct {
		reason string
		log    func(log logr.Logger) logr.Logger
		want   string
	}{
		"operator": {"the operator is the logger of its own lines",
			func(log logr.Logger) logr.Logger { return log.WithName(operator) }, "test.example.org"},
		"object": {"lines about an object have Kopf's logger",
			func(log logr.Logger) logr.Logger { return log.WithName(operator).WithValues("name", "w1") },
			"kopf.objects"},
		"own name": {"a logger's own name comes before that of the object",
			func(log logr.Logger) logr.Logger {
				return log.WithName(operator).WithName("backup").WithValues("name", "w1")
			},
			"backup"},
		"activity": {"lines about an activity have Kopf's logger, cut to the column",
			func(log logr.Logger) logr.Logger { return log.WithName(operator).WithValues("activity", "cleanup") },
			"kopf.activities.clea"},
		"forged": {"control characters of a name are escaped",
			func(log logr.Logger) logr.Logger { return log.WithName(operator).WithName("a\nb c\x1b[0m") },
			`a\nb c\x1b[0m`},
		"alike": {"a name that begins like the operator's is a name of its own",
			func(log logr.Logger) logr.Logger { return log.WithName(operator + "x") }, "test.example.orgx"},
		"long": {"a long name is cut to the column",
			func(log logr.Logger) logr.Logger { return log.WithName("a.very.long.name.of.a.logger") },
			"a.very.long.name.of."},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			c.log(newLogger(&out, console.Full)).Info("Done")
			found := fullLinePrefix.FindStringSubmatch(out.String())
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
		t.Errorf("the time is not in UTC: %v", got["timestamp"])
	}
	delete(got, "timestamp")
	want := map[string]any{
		"severity": "error", "message": "Failed\nbadly", "namespace": "ns", "n": 1.0, "error": "it broke",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
	if strings.Count(out.String(), "\n") != 1 {
		t.Errorf("more than one line: %s", out.String())
	}
}

// TestLogForMachinesCannotBeForged shows that JSON lines have printable characters only, as people read them in
// terminals, and no duplicate keys, as parsers take the last one.
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
		t.Errorf("the line controls a terminal: %q", line)
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
			t.Errorf("%q occurs %d times in %s", key, n, line)
		}
	}
}

// panickingValue panics in each of its methods.
type panickingValue struct{ err error }

func (e *panickingValue) Error() string                { return e.err.Error() }
func (e *panickingValue) String() string               { return e.err.Error() }
func (e *panickingValue) MarshalJSON() ([]byte, error) { return []byte(e.err.Error()), nil }
func (e *panickingValue) MarshalLog() any              { return e.err.Error() }
func (e *panickingValue) Format(fmt.State, rune)       { _ = e.err.Error() }

type panickingStringer struct{ *panickingValue }

func (t panickingStringer) String() string { return t.err.Error() }

func TestLogSurvivesValuesThatPanic(t *testing.T) {
	bad := &panickingValue{}
	for _, format := range []console.Format{console.Full, console.Plain, console.JSON} {
		var out bytes.Buffer
		log := newLogger(&out, format)
		for name, value := range map[string]any{
			"error": bad, "nil": (*panickingValue)(nil), "stringer": panickingStringer{bad}, "list": []any{bad},
			"mapping": map[string]any{"a": bad},
			"cause":   errors.Join(errors.New("fine"), bad),
		} {
			log.Info("Value "+name, "v", value)
			log.WithValues("w", value).Info("Bound " + name)
		}
		log.Error(bad, "Error of its own")
		log.Error((*panickingValue)(nil), "Typed nil")
		if got := strings.Count(out.String(), "\n"); got != 14 {
			t.Errorf("%s: %d of 14 lines: %s", format, got, out.String())
		}
	}
}

// TestLogDropsNothing shows that repeated messages are not dropped, unlike by the logger of controller-runtime.
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

// TestNoKeyTwiceInALine shows that a line never has a key twice: readers of JSON would see only the last value.
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

// topKeys returns the top-level keys of a JSON object in order, including duplicates.
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
