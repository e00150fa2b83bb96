package journal_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// fullExplanation returns the explanation of an object with every sort of entry.
func fullExplanation(t *testing.T) journal.Explanation {
	t.Helper()
	create := &handlers.Handler{ID: "provision", Reason: cause.Create}
	update := &handlers.Handler{
		ID: "resize", Reason: cause.Update, Field: diff.Path{"spec", "size"},
		FilterDescriptions: handlers.Words{Value: "7"},
	}
	j := newServingJournal(journal.RetentionLimits{}, create, update)
	o := widgetsOf(j).ForObject(w1, "u1")
	after := func(d time.Duration) { time.Sleep(d) }
	o.RecordEvent("", "1")
	d := o.StartEvaluation(&cause.Cause{Reason: cause.Create, Initial: true})
	d.AddVerdict(create, execution.Stop{})
	d.AddVerdict(update, execution.Stop{
		Adapter: "Updated", Reason: execution.OtherReason, Expected: cause.Update, Found: cause.Create,
	})
	d.AddToJournal()
	for range 3 {
		after(1500 * time.Millisecond)
		a := attemptOf(create, 0, execution.Outcome{Err: errors.New("no\nquota\x1b[31m"), Delay: ptr(time.Minute)})
		a.Duration = time.Second
		o.RecordAttempt(a)
	}
	o.RecordWrite("", patching.Patch{Merge: map[string]any{"status": nil}}, nil, written, nil)
	o.RecordWrite("resize", patching.Patch{Merge: map[string]any{"status": "x"}}, nil, patching.WriteResult{}, errQuota)
	after(time.Second)
	c := &cause.Cause{Reason: cause.Update}
	for _, key := range strings.Split("abcdefghij", "") {
		c.Diff = append(c.Diff, diff.Item{Op: diff.Add, Path: diff.Path{key}, New: "x"})
	}
	d = o.StartEvaluation(c)
	d.NoteDropped("the unfinished create is superseded by this update")
	d.AddVerdict(update, execution.Stop{Adapter: "Filters", Reason: execution.OtherValue, Found: int64(3)})
	d.AddToJournal()
	for _, kind := range []string{"", "MODIFIED"} {
		d = o.StartEventEvaluation(&cause.Cause{EventType: kind})
		d.AddVerdict(&handlers.Handler{ID: "hear", Family: handlers.Watching},
			execution.Stop{Reason: execution.FilteredOut})
		d.AddToJournal()
	}
	o.StartBackgroundEvaluation(&cause.Cause{}).AddToJournal()
	o.RecordHold(journal.HeldError, errQuota, time.Now().Add(time.Hour))
	return explainObject(t, j, w1)
}

func textOf(t *testing.T, e journal.Explanation) string {
	t.Helper()
	var text strings.Builder
	if err := e.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// TestTextOfEverything shows the text of an explanation with every sort of entry.
func TestTextOfEverything(t *testing.T) {
	const want = `Widget.example.org ns/w1, as seen by operator test.example.org at 2000-01-01 00:00:05.500 UTC

NOW
  The object is throttled until 2000-01-01 01:00:05.500, after an error of the framework: no quota.

HANDLERS
  provision (create)
      Called at 2000-01-01 00:00:04.500: attempt 1 failed; retrying: no quota�[31m; the next one is due at ` +
		`2000-01-01 00:01:04.500. Its retries were dropped at 2000-01-01 00:00:05.500: ` +
		`the unfinished create is superseded by this update.
  resize (update), for field spec.size, Value(7)
      Not called at 2000-01-01 00:00:05.500, for an update of a, b, c, d, e, f, g, h and 2 more: ` +
		`field spec.size does not have the required value: expected 7, found 3.

HISTORY, the oldest first
  2000-01-01 00:00:00.000  event LISTED, version 1
  2000-01-01 00:00:00.000  evaluated a creation; selected provision; skipped resize (other reason)
  2000-01-01 00:00:04.500 (3 times in 3s)  called provision: attempt 1 failed; retrying: no quota�[31m; ` +
		`the next one is due at 2000-01-01 00:01:04.500
  2000-01-01 00:00:04.500  wrote -status
  2000-01-01 00:00:04.500  wrote status for resize; failed: no quota
  2000-01-01 00:00:05.500  evaluated an update of a, b, c, d, e, f, g, h and 2 more; dropped progress: ` +
		`the unfinished create is superseded by this update; skipped resize (other value of the field)
  2000-01-01 00:00:05.500  evaluated an event of the initial list; skipped hear (filtered out)
  2000-01-01 00:00:05.500  evaluated an event MODIFIED; skipped hear (filtered out)
  2000-01-01 00:00:05.500  evaluated the current state
  2000-01-01 00:00:05.500  The object is throttled until 2000-01-01 01:00:05.500, after an error of the ` +
		`framework: no quota.
`
	synctest.Test(t, func(t *testing.T) {
		if d := cmp.Diff(want, textOf(t, fullExplanation(t))); d != "" {
			t.Errorf("-want, +got:\n%s", d)
		}
	})
}

// TestTextOfNothing shows the text of an explanation without handlers and entries.
func TestTextOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now()
		got := textOf(t, journal.Explanation{Operator: "o", At: at, Kind: "Node", Name: "n1"})
		const want = `Node n1, as seen by operator o at 2000-01-01 00:00:00.000 UTC

HANDLERS
  No handlers are registered for this kind.

HISTORY, the oldest first
  No entries.
`
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("-want, +got:\n%s", d)
		}
	})
}

// TestTextOfDecoded shows that an explanation that is encoded and decoded has the same text.
func TestTextOfDecoded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := fullExplanation(t)
		encoded, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var decoded journal.Explanation
		if err := json.Unmarshal(encoded, &decoded); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(e, decoded); d != "" {
			t.Errorf("-encoded, +decoded:\n%s", d)
		}
		if d := cmp.Diff(textOf(t, e), textOf(t, decoded)); d != "" {
			t.Errorf("the texts differ: -encoded, +decoded:\n%s", d)
		}
	})
}

// TestEmptyLists shows that empty lists are encoded as lists, not as null, which simplifies their use with jq.
func TestEmptyLists(t *testing.T) {
	j := newServingJournal(journal.RetentionLimits{})
	for name, of := range map[string]any{"explanation": explainObject(t, j, w1), "standing": j.OperatorState()} {
		encoded, err := json.Marshal(of)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(encoded), "null") {
			t.Errorf("%s: contains null: %s", name, encoded)
		}
	}
}

// TestHarmlessText shows that control characters in errors and names can neither break lines nor control the terminal.
func TestHarmlessText(t *testing.T) {
	cases := map[string]struct{ reason, text, want string }{
		"newline":       {"a newline could fake an entry, so it becomes a space", "a\nb", "a b"},
		"first newline": {"a leading newline could fake a section, so it becomes a space", "\n\nHISTORY", "  HISTORY"},
		"tab":           {"a tab becomes a space", "a\tb", "a b"},
		"return":        {"a carriage return could hide the text before it, so it is replaced", "a\rb", "a�b"},
		"escape":        {"an escape could start a terminal command, so it is replaced", "\x1b[2J", "�[2J"},
		"control":       {"a control character of one rune is replaced", "\u009b2J", "�2J"},
		"direction":     {"a change of the text direction is replaced", "a\u202eb", "a�b"},
		"line":          {"a line separator is replaced", "a\u2028b", "a�b"},
		"no text":       {"invalid UTF-8 is replaced", "a\xffb", "a�b"},
		"others":        {"letters of all languages are kept", "Größe 尺寸", "Größe 尺寸"},
		"formats":       {"formatting verbs are kept", "100%d %s", "100%d %s"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			text := textOf(t, journal.Explanation{
				Kind: "Widget", Name: c.text, Facts: []string{c.text},
				Handlers: []journal.Answer{{Text: c.text}},
				History:  []journal.Entry{{Hold: &journal.Hold{Reason: journal.HeldBlocked, Error: c.text}}},
			})
			lines := strings.Split(text, "\n")
			if len(lines) != 12 || lines[3] != "  "+c.want || strings.Count(text, c.want) != 4 {
				t.Errorf("%s: want %q four times, got %q", c.reason, c.want, text)
			}
			if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
				t.Errorf("%s: an unprintable character at %d of %q", c.reason, i, text)
			}
		})
	}
}

// TestTextOfHalfAnExplanation shows that an incomplete explanation does not cause a panic.
func TestTextOfHalfAnExplanation(t *testing.T) {
	cases := map[string]struct{ reason, text, want string }{
		"no first time": {"a count without a first time is printed without a duration",
			`{"history":[{"times":2,"event":{"type":"ADDED"}}]}`,
			"event ADDED"},
		"nothing": {"an empty entry is printed as an empty line", `{"history":[{}]}`, "HISTORY, the oldest first\n"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var e journal.Explanation
			if err := json.Unmarshal([]byte(c.text), &e); err != nil {
				t.Fatal(err)
			}
			if text := textOf(t, e); !strings.Contains(text, c.want) {
				t.Errorf("%s: want %q in %q", c.reason, c.want, text)
			}
		})
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errQuota }

// TestTextThatCannotBeWritten shows that an error of the writer is returned.
func TestTextThatCannotBeWritten(t *testing.T) {
	e := journal.Explanation{Kind: "Widget", Name: "w1", UID: types.UID("u1")}
	if err := e.WriteText(broken{}); !errors.Is(err, errQuota) {
		t.Errorf("want %v, got %v", errQuota, err)
	}
}
