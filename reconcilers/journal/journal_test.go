package journal_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// fixedState is an operator with a fixed state.
type fixedState journal.OperatorState

func (l fixedState) OperatorState() journal.OperatorState { return journal.OperatorState(l) }

var (
	widgets = discovery.Resource{
		GroupVersionKind: schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"},
		Plural:           "widgets", Singular: "widget", Shortcuts: []string{"wd"}, Namespaced: true,
	}
	w1 = types.NamespacedName{Namespace: "ns", Name: "w1"}
)

// newServingState returns an active operator that serves widgets in all namespaces, with these handlers.
func newServingState(own ...*handlers.Handler) fixedState {
	served := widgetsOf(journal.New(journal.RetentionLimits{})).ServedKind(widgets, own)
	served.Namespaces = []string{""}
	return fixedState{Operator: "test.example.org", Running: true, Kinds: []journal.ServedKind{served}}
}

// newServingJournal returns the journal of such an operator.
func newServingJournal(limits journal.RetentionLimits, own ...*handlers.Handler) *journal.Journal {
	j := journal.New(limits)
	j.SetLive(newServingState(own...))
	return j
}

func widgetsOf(j *journal.Journal, secret ...diff.Path) *journal.KindJournal {
	return j.ForKind(widgets.GroupKind(), secret)
}

func explainObject(t *testing.T, j *journal.Journal, object types.NamespacedName) journal.Explanation {
	t.Helper()
	e, err := j.Explain("widget", object)
	if err != nil {
		t.Fatalf("explaining %s: %v", object, err)
	}
	return e
}

// historyLines returns the history in short: each entry with its count, and its first and last time in seconds of
// virtual time.
func historyLines(t *testing.T, j *journal.Journal, object types.NamespacedName) []string {
	t.Helper()
	begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	all := []string{}
	for _, e := range explainObject(t, j, object).History {
		text := fmt.Sprintf("%s at %.0f", entryText(e), e.At.Sub(begin).Seconds())
		if e.First != nil {
			text += fmt.Sprintf(", %d since %.0f", e.Times, e.First.Sub(begin).Seconds())
		}
		all = append(all, text)
	}
	return all
}

func entryText(e journal.Entry) string {
	switch {
	case e.Event != nil:
		return e.Event.Type + " " + e.Event.Version
	case e.Evaluation != nil:
		return "look " + e.Evaluation.Reason + e.Evaluation.Type
	case e.Attempt != nil:
		return "attempt " + e.Attempt.Handler
	case e.Write != nil:
		return "write " + strings.Join(e.Write.Paths, ",")
	case e.Hold != nil:
		return "hold " + e.Hold.Error
	default:
		return "nothing"
	}
}

// recordEvents notes events, one per second. Each is a type with a version.
func recordEvents(o journal.ObjectJournal, all ...string) {
	for _, event := range all {
		kind, version, _ := strings.Cut(event, " ")
		o.RecordEvent(kind, version)
		time.Sleep(time.Second)
	}
}

// TestRepeatedEntries shows that a repeated entry takes one place, so that a retry each minute does not push out the
// creation.
func TestRepeatedEntries(t *testing.T) {
	cases := map[string]struct {
		reason string
		events []string
		want   []string
	}{
		"once": {"an entry without a repetition does not have a count", []string{"ADDED 1"}, []string{"ADDED 1 at 0"}},
		"twice": {
			"an entry that repeats the one before replaces it, and keeps the first time",
			[]string{"ADDED 1", "ADDED 2"},
			[]string{"ADDED 2 at 1, 2 since 0"},
		},
		"thrice": {
			"a further repetition keeps the first time",
			[]string{"A 1", "A 2", "A 3"}, []string{"A 3 at 2, 3 since 0"},
		},
		"by turns": {
			"entries that alternate take one place each",
			[]string{"A 1", "B 2", "A 3", "B 4", "A 5"},
			[]string{"B 4 at 3, 2 since 1", "A 5 at 4, 3 since 0"},
		},
		"near": {
			"an entry is folded over five others", []string{"A 0", "B 0", "C 0", "D 0", "E 0", "F 0", "A 0"},
			[]string{"B 0 at 1", "C 0 at 2", "D 0 at 3", "E 0 at 4", "F 0 at 5", "A 0 at 6, 2 since 0"},
		},
		"far": {
			"an entry is not folded over six others", []string{"A 0", "B 0", "C 0", "D 0", "E 0", "F 0", "G 0", "A 0"},
			[]string{
				"A 0 at 0", "B 0 at 1", "C 0 at 2", "D 0 at 3", "E 0 at 4", "F 0 at 5", "G 0 at 6", "A 0 at 7",
			},
		},
		"listed": {"an event without a type is of the first listing", []string{" 7"}, []string{"LISTED 7 at 0"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := newServingJournal(journal.RetentionLimits{})
				recordEvents(widgetsOf(j).ForObject(w1, "u1"), c.events...)
				if d := cmp.Diff(c.want, historyLines(t, j, w1)); d != "" {
					t.Errorf("%s; -want, +got:\n%s", c.reason, d)
				}
			})
		})
	}
}

// TestEntriesThatDiffer shows that entries are folded only if they differ in nothing but times, numbers and versions.
func TestEntriesThatDiffer(t *testing.T) {
	h, other := &handlers.Handler{ID: "h", Reason: cause.Create}, &handlers.Handler{ID: "i", Reason: cause.Create}
	look := func(c *cause.Cause, tell func(d *journal.Draft)) func(journal.ObjectJournal) {
		return func(o journal.ObjectJournal) {
			d := o.StartEvaluation(c)
			tell(d)
			d.AddToJournal()
		}
	}
	nothing := func(*journal.Draft) {}
	stop := func(stop execution.Stop) func(*journal.Draft) {
		return func(d *journal.Draft) { d.AddVerdict(h, stop) }
	}
	at := func(seconds int) execution.Stop {
		return execution.Stop{Reason: execution.Asleep, Until: time.Unix(int64(seconds), 0)}
	}
	paths := func(names ...string) *cause.Cause {
		c := &cause.Cause{Reason: cause.Update}
		for _, name := range names {
			c.Diff = append(c.Diff, diff.Item{Op: diff.Add, Path: diff.Path{name}})
		}
		return c
	}
	attempt := func(h *handlers.Handler, retry int, o execution.Outcome) func(journal.ObjectJournal) {
		return func(to journal.ObjectJournal) { to.RecordAttempt(attemptOf(h, retry, o)) }
	}
	wrote := func(by, field string, err error) func(journal.ObjectJournal) {
		return func(o journal.ObjectJournal) {
			o.RecordWrite(by, patching.Patch{Merge: map[string]any{field: int64(1)}}, nil, written, err)
		}
	}
	hold := func(why, err string, until time.Time) func(journal.ObjectJournal) {
		return func(o journal.ObjectJournal) { o.RecordHold(why, fmt.Errorf("%s", err), until) }
	}
	create := &cause.Cause{Reason: cause.Create}
	done := execution.Outcome{Final: true}
	cases := map[string]struct {
		reason     string
		one, other func(journal.ObjectJournal)
		folded     bool
	}{
		"looks": {"evaluations with the same result are folded", look(create, nothing), look(create, nothing), true},
		"reason": {"evaluations with another cause are not folded",
			look(create, nothing), look(&cause.Cause{Reason: cause.Noop}, nothing), false},
		"initial": {"a resume is not folded with a pass without changes",
			look(&cause.Cause{Reason: cause.Noop}, nothing),
			look(&cause.Cause{Reason: cause.Noop, Initial: true}, nothing), false},
		"dropped": {"evaluations that drop progress are not folded with others", look(create, nothing),
			look(create, func(d *journal.Draft) { d.NoteDropped("it") }), false},
		"paths": {"evaluations with another changed path are not folded",
			look(paths("a"), nothing), look(paths("b"), nothing), false},
		"same paths": {"evaluations with the same changed path are folded",
			look(paths("a"), nothing), look(paths("a"), nothing), true},
		"more paths": {"evaluations with another number of unlisted paths are not folded",
			look(paths(strings.Split("abcdefgh", "")...), nothing),
			look(paths(strings.Split("abcdefghi", "")...), nothing), false},
		"verdicts": {"evaluations with another verdict are not folded",
			look(create, stop(execution.Stop{Reason: execution.Finished})),
			look(create, stop(execution.Stop{Reason: execution.Blocked})), false},
		"one verdict more": {"evaluations with another number of verdicts are not folded",
			look(create, nothing), look(create, stop(at(1))), false},
		"later": {"evaluations that differ in the due time only are folded",
			look(create, stop(at(1))), look(create, stop(at(2))), true},
		"attempts": {"attempts that differ in number and time only are folded",
			attempt(h, 0, done), attempt(h, 1, done), true},
		"handlers": {"attempts of different handlers are not folded",
			attempt(h, 0, done), attempt(other, 0, done), false},
		"kinds of handlers": {"attempts of handlers with one id and different causes are not folded",
			attempt(h, 0, done), attempt(&handlers.Handler{ID: "h", Reason: cause.Delete}, 0, done), false},
		"outcomes": {"attempts with different outcomes are not folded",
			attempt(h, 0, done), attempt(h, 0, execution.Outcome{Aborted: true}), false},
		"errors": {"attempts with different errors are not folded",
			attempt(h, 0, execution.Outcome{Err: fmt.Errorf("a")}),
			attempt(h, 0, execution.Outcome{Err: fmt.Errorf("b")}), false},
		"writes": {"writes of the same paths are folded", wrote("a", "x", nil), wrote("a", "x", nil), true},
		"writers": {"writes by different handlers are not folded",
			wrote("a", "x", nil), wrote("b", "x", nil), false},
		"places": {"writes of different paths are not folded",
			wrote("a", "x", nil), wrote("a", "y", nil), false},
		"errors of writes": {"a failed write is not folded with a successful one",
			wrote("a", "x", nil), wrote("a", "x", fmt.Errorf("no")), false},
		"holds": {"holds that differ in their end only are folded",
			hold("a", "x", testTime), hold("a", "x", noTime), true},
		"causes of holds": {"holds with different causes are not folded",
			hold("a", "x", time.Time{}), hold("b", "x", time.Time{}), false},
		"errors of holds": {"holds with different errors are not folded",
			hold("a", "x", time.Time{}), hold("a", "y", time.Time{}), false},
		"sorts": {"entries of different sorts are not folded",
			hold("a", "x", time.Time{}), attempt(h, 0, done), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			j := newServingJournal(journal.RetentionLimits{})
			o := widgetsOf(j).ForObject(w1, "u1")
			c.one(o)
			c.other(o)
			if n := len(explainObject(t, j, w1).History); (n == 1) != c.folded {
				t.Errorf("%s: want folded %t, got %d entries", c.reason, c.folded, n)
			}
		})
	}
}

// TestEntriesOfOneObject shows that the entries of one object are limited, and that the oldest ones are dropped.
func TestEntriesOfOneObject(t *testing.T) {
	many := make([]string, 30)
	for i := range many {
		many[i] = fmt.Sprintf("T%02d 0", i)
	}
	cases := map[string]struct {
		reason string
		limit  int
		want   int
	}{
		"default": {"without a limit the default applies", 0, journal.DefaultEntries},
		"wrong":   {"a negative limit is replaced by the default", -1, journal.DefaultEntries},
		"one":     {"the smallest limit keeps the last entry", 1, 1},
		"three":   {"a limit keeps the last entries", 3, 3},
		"all":     {"entries below the limit are kept", 40, 30},
		"exact":   {"as many entries as the limit are kept", 30, 30},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := newServingJournal(journal.RetentionLimits{Entries: c.limit})
				recordEvents(widgetsOf(j).ForObject(w1, "u1"), many...)
				got := historyLines(t, j, w1)
				if first := fmt.Sprintf("T%02d 0 at %d", 30-c.want, 30-c.want); len(got) != c.want || got[0] != first {
					t.Errorf("%s: want %d entries from %q, got %v", c.reason, c.want, first, got)
				}
			})
		})
	}
}

// TestNilJournal shows that a nil journal, and values derived from it, record nothing and do not panic.
func TestNilJournal(t *testing.T) {
	var none *journal.Journal
	none.SetLive(newServingState())
	kind := none.ForKind(widgets.GroupKind(), nil)
	objects := map[string]journal.ObjectJournal{
		"of no kind":   kind.ForObject(w1, "u1"),
		"of a body":    kind.ForBody(map[string]any{"metadata": map[string]any{"name": "w1"}}),
		"of no values": {},
	}
	for name, o := range objects {
		t.Run(name, func(t *testing.T) {
			c := &cause.Cause{Reason: cause.Create}
			for _, d := range []*journal.Draft{o.StartEvaluation(c), o.StartEventEvaluation(c),
				o.StartBackgroundEvaluation(c)} {
				if d != nil || d.VerdictFunc() != nil {
					t.Error("a draft is made without a journal")
				}
				d.NoteDropped("it")
				d.AddVerdict(&handlers.Handler{ID: "h"}, execution.Stop{Reason: execution.Finished})
				d.ClearVerdicts()
				d.AddToJournal()
			}
			o.RecordEvent("ADDED", "1")
			o.RecordAttempt(attemptOf(&handlers.Handler{ID: "h"}, 0, execution.Outcome{Err: fmt.Errorf("no")}))
			o.RecordWrite("h", patching.Patch{}, nil, written, fmt.Errorf("no"))
			o.RecordHold(journal.HeldError, fmt.Errorf("no"), time.Time{})
			if o.IsRecording() {
				t.Error("entries are kept without a journal")
			}
		})
	}
	if o := widgetsOf(journal.New(journal.RetentionLimits{})).ForObject(w1, "u1"); !o.IsRecording() {
		t.Error("entries are not kept although there is a journal")
	}
}
