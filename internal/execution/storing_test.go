package execution_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// recordingStorage is a storage that records its calls.
type recordingStorage struct {
	stored, purged []string
	storeErr       error
}

func (l *recordingStorage) Store(_, _ map[string]any, id string, _ progress.Record) error {
	l.stored = append(l.stored, id)
	return l.storeErr
}

func (l *recordingStorage) Purge(_, _ map[string]any, id string) { l.purged = append(l.purged, id) }

func (l *recordingStorage) Touch(_, _ map[string]any, _ *string) {}

func TestStoreFails(t *testing.T) {
	state := restore(t, nil, []string{"a"}, []string{"a"}, "create")
	err := state.StoreChanged(&recordingStorage{storeErr: errOrdinary}, nil, nil)
	if !errors.Is(err, errOrdinary) || err.Error() != `storing the progress of handler "a": boo` {
		t.Errorf("want the handler named in the error, got %v", err)
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
		"Unchanged": {reason: "an unchanged record is not stored again", held: whole, selected: []string{"a"}},
		"Concluded": {
			reason: "a concluded attempt is stored in its record", held: whole, selected: []string{"a"},
			outcome: &execution.Outcome{Final: true}, want: []string{"a"},
		},
		"Aborted": {
			reason: "an aborted attempt is not stored", held: whole, selected: []string{"a"},
			outcome: &execution.Outcome{Aborted: true},
		},
		"Unselected": {
			reason: "records of handlers that are not selected are not stored",
			held:   whole, selected: []string{"b"}, want: []string{"b"},
		},
		"Incomplete": {
			reason:   "a record without a start is stored with one, so that it does not move with each restart",
			selected: []string{"a"},
			want:     []string{"a"},
		},
		"New": {
			reason: "a new handler is stored when it is selected, because its time runs", held: whole,
			selected: []string{"a", "b"}, want: []string{"b"},
		},
		"UnknownKeys": {
			reason: "an unknown key that a write would keep causes no write",
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
			to := &recordingStorage{}
			if err := state.StoreChanged(to, nil, nil); err != nil {
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
	state.MarkWritten()
	to := &recordingStorage{}
	if err := state.StoreChanged(to, nil, nil); err != nil || to.stored != nil {
		t.Errorf("written records are stored again: %v, error %v", to.stored, err)
	}
	conclude(t, state, "b", execution.Outcome{Err: errOrdinary, Delay: ptr.To(time.Second)}, epoch)
	if err := state.StoreChanged(to, nil, nil); err != nil || !cmp.Equal([]string{"b"}, to.stored) {
		t.Errorf("want only the changed record stored, got %v, error %v", to.stored, err)
	}
}

// TestStoreGoesOn shows that the records of sub-handlers are stored even if earlier ones need no record any more.
func TestStoreGoesOn(t *testing.T) {
	held := records{"fn/a": {Purpose: ptr.To("create"), Retries: ptr.To(int64(1))}, "old": {Purpose: ptr.To("delete")}}
	state := restore(t, held, []string{"old", "fn"}, []string{"fn"}, "create")
	state.Compact = true
	for _, id := range []string{"fn/a", "fn/b"} {
		declare(t, state, id, handlers.Policy{}, "fn")
	}
	conclude(t, state, "fn/a", execution.Outcome{Final: true}, epoch)
	conclude(t, state, "fn/b", execution.Outcome{Final: true, Err: errOrdinary}, epoch)
	to := &recordingStorage{}
	if err := state.StoreChanged(to, nil, nil); err != nil || !cmp.Equal([]string{"fn/a"}, to.purged) ||
		!cmp.Equal([]string{"fn", "fn/b"}, to.stored) {
		t.Errorf("got %+v, error %v", to, err)
	}
	if err := state.StoreChanged(&panicking{}, nil, nil); err == nil || !strings.Contains(err.Error(), `"fn/a"`) {
		t.Errorf("want the error of a storage that panics, got %v", err)
	}
	state.MarkWritten()
	again := &recordingStorage{}
	if err := state.StoreChanged(again, nil, nil); err != nil || again.stored != nil || again.purged != nil {
		t.Errorf("written records are stored again: %+v, error %v", again, err)
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
			reason: "records of former causes are removed with those of their sub-handlers, but records of selected " +
				"handlers are kept",
			purge: func(s *execution.State, to progress.Writer) error { return s.PurgePassive(to, nil, nil) },
			want:  []string{"old", "old/x", "old/y"},
		},
		"All": {
			reason: "at the end of a cause, all records are removed once, even those that were never loaded",
			purge:  func(s *execution.State, to progress.Writer) error { return s.PurgeAll(to, nil, nil) },
			want:   []string{"none", "now", "old", "now/x", "old/x", "old/y", "sub"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			// "sub" is selected but not owned, like a sub-handler.
			state := restore(t, held, []string{"none", "now", "old"}, []string{"now", "sub"}, "update")
			to := &recordingStorage{}
			if err := tc.purge(state, to); err != nil {
				t.Error(err)
			}
			if d := cmp.Diff(tc.want, to.purged); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

// TestStoreForeignForms shows that a record in a foreign form is rewritten by the process that continues it, as in
// Kopf.
func TestStoreForeignForms(t *testing.T) {
	const own = `{"started":"2024-05-06T07:08:09.123456+00:00",` +
		`"purpose":"create","retries":1,"success":false,"failure":false}`
	for name, tc := range map[string]struct {
		reason, text string
		want         []string
	}{
		"Own": {"a record in the own form is not rewritten", own, nil},
		"Offset": {
			"a time with another offset is not rewritten",
			strings.Replace(own, "07:08:09.123456+00", "09:08:09.123456+02", 1), nil,
		},
		"OtherOrder": {
			"another order of keys is not rewritten",
			strings.Replace(own[:len(own)-1], "{", `{"failure":false,`, 1) + "}", nil,
		},
		"Z": {"a time with Z is rewritten", strings.Replace(own, "+00:00", "Z", 1), []string{"a"}},
		"Unsorted": {
			"unsorted ids of sub-handlers are rewritten",
			strings.Replace(own, "}", `,"subrefs":["a/y","a/x"]}`, 1), []string{"a"},
		},
		"Sorted":     {"sorted ids are not rewritten", strings.Replace(own, "}", `,"subrefs":["a/x","a/y"]}`, 1), nil},
		"NoSubrefs":  {"an empty list is rewritten", strings.Replace(own, "}", `,"subrefs":[]}`, 1), []string{"a"}},
		"UnknownKey": {"an unknown key is removed", strings.Replace(own, "{", `{"future":1,`, 1), []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			body := object{"metadata": object{"annotations": object{"kopf.zalando.org/a": tc.text}}}
			state, err := execution.RestoreState(reader(body), []string{"a"}, []string{"a"}, "create", at(1))
			if err != nil {
				t.Fatal(err)
			}
			to := &recordingStorage{}
			if err := state.StoreChanged(to, nil, nil); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, to.stored); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
			state.MarkWritten()
			if err := state.StoreChanged(to, nil, nil); err != nil || len(to.stored) > len(tc.want) {
				t.Errorf("written records are stored again: got %v, error %v", to.stored, err)
			}
		})
	}
}
