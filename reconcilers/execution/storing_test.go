package execution_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// ledger is a storage that notes what it is told to do.
type ledger struct {
	stored, purged []string
	fails          error
}

func (l *ledger) Store(_, _ map[string]any, id string, _ progress.Record) error {
	l.stored = append(l.stored, id)
	return l.fails
}

func (l *ledger) Purge(_, _ map[string]any, id string) { l.purged = append(l.purged, id) }

func (l *ledger) Touch(_, _ map[string]any, _ *string) {}

func TestStoreFails(t *testing.T) {
	state := restore(t, nil, []string{"a"}, []string{"a"}, "create")
	err := state.Store(&ledger{fails: errBoo}, nil, nil)
	if !errors.Is(err, errBoo) || err.Error() != `storing the progress of handler "a": boo` {
		t.Errorf("the handler must be named: %v", err)
	}
}

func TestStore(t *testing.T) {
	whole := progress.Record{
		Purpose: ptr.To("create"), Started: &epoch, Retries: ptr.To(int64(1)), Success: ptr.To(false),
		Failure: ptr.To(false),
	}
	tests := map[string]struct {
		reason   string
		held     progress.Record
		selected []string
		outcome  *execution.Outcome
		want     []string
	}{
		"Unchanged": {reason: "what the object has already is not written", held: whole, selected: []string{"a"}},
		"Concluded": {
			reason: "an attempt changes the record", held: whole, selected: []string{"a"},
			outcome: &execution.Outcome{Final: true}, want: []string{"a"},
		},
		"Aborted": {
			reason: "an attempt that does not count does not", held: whole, selected: []string{"a"},
			outcome: &execution.Outcome{Aborted: true},
		},
		"Unselected": {
			reason: "passive records are not ours to write", held: whole, selected: []string{"b"}, want: []string{"b"},
		},
		"Incomplete": {
			reason: "the start of a record that has none must not move with every restart", selected: []string{"a"},
			want: []string{"a"},
		},
		"New": {
			reason: "a handler is remembered from its selection, for its time runs", held: whole,
			selected: []string{"a", "b"}, want: []string{"b"},
		},
		"UnknownKeys": {
			reason: "a foreign key that no write would drop is no reason to write",
			held: progress.Record{
				Purpose: ptr.To("create"), Started: &epoch, Retries: ptr.To(int64(1)), Success: ptr.To(false),
				Failure: ptr.To(false), Unknown: object{"x": "y"},
			},
			selected: []string{"a"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			state := restore(t, records{"a": tc.held}, []string{"a", "b"}, tc.selected, "create")
			if tc.outcome != nil {
				conclude(t, state, "a", *tc.outcome, epoch)
			}
			to := &ledger{}
			if err := state.Store(to, nil, nil); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, to.stored); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

func TestWritten(t *testing.T) {
	state := restore(t, nil, []string{"a", "b"}, []string{"a", "b"}, "create")
	state.Written()
	to := &ledger{}
	if err := state.Store(to, nil, nil); err != nil || to.stored != nil {
		t.Errorf("what is written already is not written again: %v, error %v", to.stored, err)
	}
	conclude(t, state, "b", execution.Outcome{Err: errBoo, Delay: ptr.To(time.Second)}, epoch)
	if err := state.Store(to, nil, nil); err != nil || !cmp.Equal([]string{"b"}, to.stored) {
		t.Errorf("only what has changed since is written: %v, error %v", to.stored, err)
	}
}

// Sub-handlers that need no records any more do not keep those after them from theirs.
func TestStoreGoesOn(t *testing.T) {
	held := records{"fn/a": {Purpose: ptr.To("create"), Retries: ptr.To(int64(1))}, "old": {Purpose: ptr.To("delete")}}
	state := restore(t, held, []string{"old", "fn"}, []string{"fn"}, "create")
	state.Compact = true
	for _, id := range []string{"fn/a", "fn/b"} {
		declare(t, state, id, handlers.Policy{}, "fn")
	}
	conclude(t, state, "fn/a", execution.Outcome{Final: true}, epoch)
	conclude(t, state, "fn/b", execution.Outcome{Final: true, Err: errBoo}, epoch)
	to := &ledger{}
	if err := state.Store(to, nil, nil); err != nil || !cmp.Equal([]string{"fn/a"}, to.purged) ||
		!cmp.Equal([]string{"fn", "fn/b"}, to.stored) {
		t.Errorf("got %+v, error %v", to, err)
	}
	if err := state.Store(&panicking{}, nil, nil); err == nil || !strings.Contains(err.Error(), `"fn/a"`) {
		t.Errorf("a storage that panics fails: got the error %v", err)
	}
	state.Written()
	again := &ledger{}
	if err := state.Store(again, nil, nil); err != nil || again.stored != nil || again.purged != nil {
		t.Errorf("what is written is not written again: %+v, error %v", again, err)
	}
}

func TestPurge(t *testing.T) {
	held := records{
		"old": {Purpose: ptr.To("create"), Subrefs: []string{"old/x", "old/y"}},
		"now": {Purpose: ptr.To("update"), Subrefs: []string{"now/x"}},
	}
	tests := map[string]struct {
		reason string
		purge  func(*execution.State, progress.Writer) error
		want   []string
	}{
		"Passive": {
			reason: "records of former causes go with their sub-handlers'; those of selected handlers stay, changed " +
				"or not",
			purge: func(s *execution.State, to progress.Writer) error { return s.PurgePassive(to, nil, nil) },
			want:  []string{"old", "old/x", "old/y"},
		},
		"All": {
			reason: "at the end of a cause all go, each once, even those that were never loaded",
			purge:  func(s *execution.State, to progress.Writer) error { return s.Purge(to, nil, nil) },
			want:   []string{"none", "now", "old", "now/x", "old/x", "old/y", "sub"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			// "sub" is selected, but not owned: so sub-handlers are.
			state := restore(t, held, []string{"none", "now", "old"}, []string{"now", "sub"}, "update")
			to := &ledger{}
			if err := tc.purge(state, to); err != nil {
				t.Error(err)
			}
			if d := cmp.Diff(tc.want, to.purged); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

// A record that is not in the form of its own is written anew by whoever goes on with it, as Kopf does.
func TestStoreForeignForms(t *testing.T) {
	const own = `{"started":"2024-05-06T07:08:09.123456+00:00",` +
		`"purpose":"create","retries":1,"success":false,"failure":false}`
	for name, tc := range map[string]struct {
		reason, text string
		want         []string
	}{
		"Own": {"it says the same in the same way", own, nil},
		"Offset": {
			"it is the same way with another offset",
			strings.Replace(own, "07:08:09.123456+00", "09:08:09.123456+02", 1), nil,
		},
		"OtherOrder": {
			"order means nothing", strings.Replace(own[:len(own)-1], "{", `{"failure":false,`, 1) + "}", nil,
		},
		"Z": {"times are written otherwise", strings.Replace(own, "+00:00", "Z", 1), []string{"a"}},
		"Unsorted": {
			"the ids are in order", strings.Replace(own, "}", `,"subrefs":["a/y","a/x"]}`, 1), []string{"a"},
		},
		"Sorted":     {"it is as it would be written", strings.Replace(own, "}", `,"subrefs":["a/x","a/y"]}`, 1), nil},
		"NoSubrefs":  {"none at all are not listed", strings.Replace(own, "}", `,"subrefs":[]}`, 1), []string{"a"}},
		"UnknownKey": {"a write drops it", strings.Replace(own, "{", `{"future":1,`, 1), []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			body := object{"metadata": object{"annotations": object{"kopf.zalando.org/a": tc.text}}}
			state, err := execution.Restore(reader(body), []string{"a"}, []string{"a"}, "create", at(1))
			if err != nil {
				t.Fatal(err)
			}
			to := &ledger{}
			if err := state.Store(to, nil, nil); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, to.stored); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
			state.Written()
			if err := state.Store(to, nil, nil); err != nil || len(to.stored) > len(tc.want) {
				t.Errorf("what is written is not written again: got %v, error %v", to.stored, err)
			}
		})
	}
}
