package changes

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/storage/asciijson"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

var (
	annotationStorage = progress.Annotations{Prefix: "op.example.org"}
	inStatus          = progress.Status{Name: "kopf"}
)

// newBudget returns the budget of handler "a" with three sub-handlers: one has succeeded and needs no record, one has
// a record and is to be retried, and one is to be called for the first time.
func newBudget(t *testing.T, store progress.Storage) (b *budget, done, tried, fresh *execution.HandlerState) {
	t.Helper()
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	records := map[string]*progress.Record{
		"a": {Started: &now, Subrefs: []string{"a/tried"}, Succeeded: []string{"done"}},
		"a/tried": {
			Started: &now, Retries: ptr.To(int64(1)), Success: ptr.To(false), Failure: ptr.To(false),
		},
	}
	read := func(id string) (*progress.Record, error) { return records[id], nil }
	state, err := execution.RestoreState(read, []string{"a"}, []string{"a"}, "create", now)
	if err != nil {
		t.Fatal(err)
	}
	var subs []*execution.HandlerState
	for _, id := range []string{"a/done", "a/tried", "a/fresh"} {
		sub, err := state.RestoreSub(&handlers.Handler{ID: id}, []string{"a"}, now)
		if err != nil {
			t.Fatal(err)
		}
		sub.Postponed = false
		subs = append(subs, sub)
	}
	handling := &ChangeHandling{HandledKind: kind.HandledKind{Clock: func() time.Time { return now }}}
	handling.Progress = store
	b = &budget{
		handling: handling, object: &object{handling: handling, body: map[string]any{"spec": "something"}},
		state: state, reserved: map[string]size{}, running: map[string]bool{},
	}
	if err := b.countCopies(); err != nil {
		t.Fatal(err)
	}
	return b, subs[0], subs[1], subs[2]
}

// TestBudgetFits shows that a reservation fits if it needs no more than the free room plus the room already reserved
// for the same handler.
func TestBudgetFits(t *testing.T) {
	b := budget{remaining: size{10, 10}, reserved: map[string]size{"a": {2, 2}}}
	for wanted, want := range map[size]bool{
		{12, 12}: true, {13, 12}: false, {12, 13}: false, {0, 0}: true, {13, 0}: false, {0, 13}: false,
	} {
		if got := b.canReserve("a", wanted); got != want {
			t.Errorf("%v: fits is %v, want %v", wanted, got, want)
		}
	}
	if b.canReserve("b", size{11, 0}) || !b.canReserve("b", size{10, 10}) {
		t.Error("a handler without a reservation can have the free room, and no more")
	}
}

// TestBudgetSizeOf shows that a success without a record takes the size of its name in the record of its handler, and
// that a sub-handler that was not called takes nothing.
func TestBudgetSizeOf(t *testing.T) {
	b, done, tried, fresh := newBudget(t, annotationStorage)
	fresh.Postponed = true
	got := []size{}
	for _, h := range []*execution.HandlerState{done, fresh} {
		taken, err := b.sizeOf(h)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, taken)
	}
	want := []size{size{}.addMultiple(len(`"done",`), b.copiesPerRecord), {}}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(size{})); d != "" || b.copiesPerRecord.annotations == 0 {
		t.Errorf("with %v copies, -want, +got:\n%s", b.copiesPerRecord, d)
	}
	if taken, err := b.sizeOf(tried); err != nil || taken.annotations < 100 {
		t.Errorf("the size of a record is %v; error %v", taken, err)
	}
}

// TestBudgetExpected shows that the first call of a sub-handler reserves room for the time of its end in addition to
// its present size. After that, a record keeps its size until the next call.
func TestBudgetExpected(t *testing.T) {
	b, _, tried, fresh := newBudget(t, annotationStorage)
	for h, first := range map[*execution.HandlerState]bool{tried: false, fresh: true} {
		now, err := b.sizeOf(h)
		if err != nil {
			t.Fatal(err)
		}
		wanted, err := b.expectedSize(h)
		if err != nil || wanted.annotations > now.annotations != first || wanted.annotations < now.annotations {
			t.Errorf("%s: the present size is %v, and %v is reserved; error %v", h.ID, now, wanted, err)
		}
	}
}

// TestBudgetReserveForUnfinished shows that room is reserved for the sub-handlers that are to be called, but not for
// the handler itself or for finished sub-handlers.
func TestBudgetReserveForUnfinished(t *testing.T) {
	b, _, tried, fresh := newBudget(t, annotationStorage)
	if err := b.reserveForUnfinished(); err != nil {
		t.Fatal(err)
	}
	want := map[string]size{}
	for _, h := range []*execution.HandlerState{tried, fresh} {
		var err error
		if want[h.ID], err = b.expectedSize(h); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(want, b.reserved, cmp.AllowUnexported(size{})); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
}

// TestBudgetRestLeft shows that records may use half of the room outside the annotations. The stored records count as
// records, not as a part of the object.
func TestBudgetRestLeft(t *testing.T) {
	b, _, tried, fresh := newBudget(t, inStatus)
	message := "an error that makes it longer than the other one"
	tried.Message = &message
	text, err := asciijson.Marshal(b.object.body)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := b.sizeOf(tried)
	if err != nil {
		t.Fatal(err)
	}
	other, err := b.sizeOf(fresh)
	if err != nil || stored.otherFields <= other.otherFields || other.otherFields < 100 {
		t.Fatalf("the sizes of the records are %v and %v; error %v", stored, other, err)
	}
	want := (1400*1024-(len(text)-stored.otherFields))/2 - stored.otherFields - other.otherFields
	if got, err := b.roomOutsideAnnotations(); got != want || err != nil {
		t.Errorf("got %d, want %d; error %v", got, want, err)
	}
}

// TestSizeOfPatch shows that only the annotations of the metadata count, in whatever order the fields are visited.
func TestSizeOfPatch(t *testing.T) {
	patch := map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"key": "text"}},
		"status":   map[string]any{"a": "b"}, "spec": map[string]any{},
	}
	want := size{len("key") + len("text"), len(`{"a":"b"}`) + len(`{}`)}
	for range 64 {
		if got := sizeOfPatch(patch); got != want {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

// TestTooManyError shows that the error contains the number of sub-handlers not called, the number declared, and the
// number that fits.
func TestTooManyError(t *testing.T) {
	const want = "3 of 5 sub-handlers are not called: the object has room for the progress of 2"
	subs, all := &subHandlers{formerIDsByID: map[string][]string{}}, []subHandler{}
	for i := range 5 {
		subs.formerIDsByID[strconv.Itoa(i)] = nil
		all = append(all, subHandler{state: &execution.HandlerState{Postponed: i >= 2}})
	}
	if got := subs.postponedError(all); got.Error() != want || !execution.IsPermanent(got) {
		t.Errorf("got %q, want %q", got, want)
	}
}
