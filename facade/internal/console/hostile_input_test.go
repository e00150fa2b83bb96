package console_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/console"
)

// recordingWriter keeps the text of each call. It does not lock: the caller must write from one goroutine at a time.
type recordingWriter struct{ lines []string }

func (w *recordingWriter) Write(text []byte) (int, error) {
	w.lines = append(w.lines, string(text))
	return len(text), nil
}

// TestLinesOfManyGoroutines shows that lines of many goroutines never interleave: each is one write, one at a time,
// however long it is.
func TestLinesOfManyGoroutines(t *testing.T) {
	const goroutines, each = 100, 20
	for _, format := range []console.Format{console.Full, console.Plain, console.JSON} {
		out, running := &recordingWriter{}, sync.WaitGroup{}
		log := newLogger(out, format).WithValues("name", "w1")
		for i := range goroutines {
			running.Go(func() {
				long := strings.Repeat(string(rune('a'+i%26)), 1<<(i%14))
				for n := range each {
					log.WithValues("goroutine", i).Info("Line", "n", n, "long", long, "end", true)
				}
			})
		}
		running.Wait()
		if len(out.lines) != goroutines*each {
			t.Fatalf("%s: %d lines", format, len(out.lines))
		}
		for _, line := range out.lines {
			if strings.Count(line, "\n") != 1 || strings.Count(line, "Line") != 1 || !strings.HasSuffix(line, "\n") {
				t.Fatalf("%s: not a separate line: %.200q", format, line)
			}
		}
	}
}

// TestValuesThatCannotBeShown shows that a value that cannot be logged is replaced by a description and never stops
// the program.
func TestValuesThatCannotBeShown(t *testing.T) {
	self := map[string]any{}
	self["self"] = self
	list := []any{nil}
	list[0] = list
	type node struct{ Next *node }
	ring := &node{}
	ring.Next = ring
	deep := map[string]any{}
	for range 5_000 {
		deep = map[string]any{"in": deep}
	}
	const cycle = ": json: unsupported value: encountered a cycle via "
	cases := map[string]struct {
		reason string
		value  any
		want   string
	}{
		"mapping in itself": {"a mapping that contains itself is described by its type",
			self, "a map[string]interface {}" + cycle},
		"list in itself": {"a list that contains itself is described by its type",
			list, "a []interface {}" + cycle},
		"structure in itself": {"a struct that points to itself is described by its type",
			ring, "a *console_test.node" + cycle},
		"function inside": {"a struct with a function is described by its type", struct{ F func() }{},
			"a struct { F func() }: json: unsupported type"},
		"not a number": {"NaN is logged as text, as JSON does not have it", math.NaN(), "NaN"},
		"no pod":       {"a nil pod is logged as nil", (*corev1.Pod)(nil), "nil"},
		"no mapping":   {"a nil mapping is logged as null", map[string]any(nil), "null"},
		"very deep":    {"a very deep value does not stop the program", deep, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for _, format := range []console.Format{console.Plain, console.JSON} {
				out := &recordingWriter{}
				newLogger(out, format).Info("Got", "v", c.value)
				newLogger(out, format).WithValues("v", c.value).Info("Got")
				newLogger(out, format).Info("Got", c.value, 1)
				if len(out.lines) != 3 || !strings.Contains(out.lines[0], c.want) ||
					!strings.Contains(out.lines[1], c.want) {
					t.Errorf("%s\nwant %q, got %.300q", c.reason, c.want, out.lines)
				}
			}
		})
	}
}

// TestLongValues shows that long values are not cut.
func TestLongValues(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, format := range []console.Format{console.Plain, console.JSON} {
		out := &recordingWriter{}
		newLogger(out, format).Info(long, "v", long)
		if len(out.lines) != 1 || strings.Count(out.lines[0], long) != 2 {
			t.Errorf("%s: %d writes", format, len(out.lines))
		}
	}
}

// FuzzNothingControlsATerminal shows that values of objects, errors and handlers neither control a terminal nor look
// like another line.
func FuzzNothingControlsATerminal(f *testing.F) {
	f.Add("\x1b]0;owned\x07\x1b[2J\x1b[31m\r\nINFO forged\u009b2J\u202e\xff\x00", "plain")
	f.Add("\n\n", "a] [b")
	f.Add("\u2028\u2029\x85\v\f", "\u200b\U000e0041\ufffd\xed\xa0\x80")
	f.Fuzz(func(t *testing.T, evil, other string) {
		for _, format := range []console.Format{console.Full, console.Plain, console.JSON} {
			for _, prefix := range []bool{true, false} {
				out := &recordingWriter{}
				log := console.New(out, console.Options{Format: format, Prefix: &prefix, Operator: other})
				log = log.WithName(evil).WithValues("kind", other, "namespace", evil, "name", other+"x", "uid", evil)
				tree := map[string]any{evil: []string{other}, other: errors.New(evil)}
				log.Error(errors.New(evil), evil, other, evil, "tree", tree, "stack", evil)
				log.WithValues("activity", evil).Info(other, "error", fmt.Errorf("in %q: %w", evil, io.EOF))
				for _, line := range out.lines {
					checkLine(t, format, line)
				}
			}
		}
	})
}

// checkLine checks that an entry of the log has printable characters only.
func checkLine(t *testing.T, format console.Format, line string) {
	t.Helper()
	inner, ended := strings.CutSuffix(line, "\n")
	if format != console.JSON {
		inner = strings.ReplaceAll(strings.ReplaceAll(inner, "\n\t", ""), "\t", "")
	} else if !json.Valid([]byte(line)) {
		t.Errorf("not JSON: %q", line)
	}
	hidden := strings.ContainsFunc(inner, func(r rune) bool { return !unicode.IsPrint(r) })
	if !ended || hidden || !utf8.ValidString(line) {
		t.Errorf("%s: the line controls a terminal: %q", format, line)
	}
}

// TestReservedKeys shows that a key of the framework keeps its value if a handler logs the same key, also in groups
// and at any depth.
func TestReservedKeys(t *testing.T) {
	out := &recordingWriter{}
	options := console.Options{Format: console.JSON, ReferenceKey: "it"}
	log := console.New(out, options).WithValues("apiVersion", "v1", "kind", "Pod", "namespace", "ns", "name", "w1",
		"uid", "u1", "handler", "fn", "attempt", 1)
	reserved := []string{"uid", "kind", "name", "namespace", "it", "handler", "attempt", "timestamp", "severity",
		"message", "logger"}
	var values []any
	want := []string{"timestamp", "severity", "message", "it", "handler", "attempt"}
	for _, key := range reserved {
		values, want = append(values, key, "forged"), append(want, "extra."+key)
	}
	log.Info("Done", values...)
	got := topKeys(t, out.lines[0])
	slices.Sort(got)
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
}

// TestClosedOutput shows that a failing writer does not stop the caller.
func TestClosedOutput(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = reader.Close(), writer.Close()
	log := newLogger(writer, console.Full)
	log.Info("Lost")
	log.Error(io.ErrClosedPipe, "Lost as well")
}

// TestOnTerminal shows that only terminals with support for colours count.
func TestOnTerminal(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0) // for a program, its own side is a terminal as well
	if err != nil {
		t.Skipf("this system has no pseudo-terminals here: %v", err)
	}
	defer func() { _ = terminal.Close() }()
	reader, pipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = reader.Close(), pipe.Close() }()
	cases := map[string]struct {
		reason      string
		out         io.Writer
		noColor, of string
		want        bool
	}{
		"terminal":       {"a terminal with colours counts", terminal, "", "xterm-256color", true},
		"NO_COLOR":       {"NO_COLOR switches colours off", terminal, "1", "xterm", false},
		"dumb terminal":  {"a dumb terminal does not count", terminal, "", "dumb", false},
		"pipe":           {"a pipe does not count", pipe, "", "xterm", false},
		"no file at all": {"a writer that is not a file does not count", &recordingWriter{}, "", "xterm", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NO_COLOR", c.noColor)
			t.Setenv("TERM", c.of)
			if got := console.OnTerminal(c.out); got != c.want {
				t.Errorf("%s: got %t", c.reason, got)
			}
		})
	}
}

// TestColours shows the colour of each level, and that JSON does not have any.
func TestColours(t *testing.T) {
	for format, want := range map[console.Format]string{
		console.Plain: "\x1b[2m[w] a\x1b[0m n=1\n" + "[w] b n=1\n" + "\x1b[31m[w] c\x1b[0m n=1\n", console.JSON: "",
	} {
		out := &recordingWriter{}
		log := console.New(out, console.Options{Format: format, Colours: true, Verbosity: console.Verbose})
		log = log.WithValues("name", "w")
		log.V(1).Info("a", "n", 1)
		log.Info("b", "n", 1)
		log.Error(nil, "c", "n", 1)
		got := strings.Join(out.lines, "")
		if format == console.JSON {
			got = strings.Join(strings.Split(got, "\x1b")[1:], "") // none
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: -want, +got:\n%s", format, d)
		}
	}
}
