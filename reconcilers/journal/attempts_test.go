package journal_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// written is the result of a write that the server has accepted.
var written = patching.WriteResult{Body: map[string]any{}}

// noTime is the zero time: the end is unknown.
var noTime time.Time

var errQuota = errors.New("no quota")

func attemptOf(h *handlers.Handler, retry int, o execution.Outcome) *execution.Attempt {
	a := execution.NewAttempt(h, &cause.Cause{Reason: cause.Create}, nil)
	a.Call.Retry, a.Outcome = retry, o
	return a
}

// lastEntry returns the last entry.
func lastEntry(t *testing.T, j *journal.Journal) journal.Entry {
	t.Helper()
	all := explainObject(t, j, w1).History
	if len(all) == 0 {
		t.Fatal("the journal has no entries")
	}
	return all[len(all)-1]
}

// TestAttempts shows that the journal describes a call by its outcome.
func TestAttempts(t *testing.T) {
	minute, none := time.Minute, time.Duration(0)
	due := time.Date(2000, 1, 1, 0, 1, 0, 0, time.UTC)
	long := strings.Repeat("x", 300)
	cases := map[string]struct {
		reason  string
		outcome execution.Outcome
		want    journal.AttemptEntry
	}{
		"blocked": {"a blocked outcome is named as such, although it is also aborted",
			execution.Outcome{Blocked: true, Aborted: true},
			journal.AttemptEntry{Outcome: "cannot be called with the object"}},
		"interrupted": {"an aborted outcome is interrupted, with its error",
			execution.Outcome{Aborted: true, Err: errQuota},
			journal.AttemptEntry{Outcome: "interrupted", Error: "no quota"}},
		"ignored": {"an ignored error is noted, although the call counts as a success",
			execution.Outcome{Final: true, Ignored: errQuota},
			journal.AttemptEntry{Outcome: "failed; its errors are ignored", Error: "no quota"}},
		"succeeded": {"a final outcome without an error is a success", execution.Outcome{Final: true},
			journal.AttemptEntry{Outcome: "succeeded"}},
		"failed": {"a final outcome with an error is a permanent failure",
			execution.Outcome{Final: true, Err: errQuota},
			journal.AttemptEntry{Outcome: "failed permanently", Error: "no quota"}},
		"final with delay": {"a final outcome does not have a next attempt, even with a delay",
			execution.Outcome{Final: true, Err: errQuota, Delay: &minute},
			journal.AttemptEntry{Outcome: "failed permanently", Error: "no quota"}},
		"waiting": {"a delay without an error is a wait", execution.Outcome{Delay: &minute},
			journal.AttemptEntry{Outcome: "waiting", Next: &due}},
		"pending": {"a pending error is a wait, not a failure",
			execution.Outcome{Err: fmt.Errorf("wrapped: %w", &execution.PendingError{}), Delay: &minute},
			journal.AttemptEntry{
				Outcome: "waiting", Next: &due, Error: fmt.Sprintf("wrapped: %v", &execution.PendingError{}),
			}},
		"retried": {"a retried error has the time of its next attempt",
			execution.Outcome{Err: errQuota, Delay: &minute},
			journal.AttemptEntry{Outcome: "failed; retrying", Error: "no quota", Next: &due}},
		"at once": {"a retry without a delay is due now", execution.Outcome{Err: errQuota, Delay: &none},
			journal.AttemptEntry{Outcome: "failed; retrying", Error: "no quota", Next: ptr(due.Add(-minute))}},
		"no delay": {"a retry without a known delay has no time", execution.Outcome{Err: errQuota},
			journal.AttemptEntry{Outcome: "failed; retrying", Error: "no quota"}},
		"long": {"a long error is cut", execution.Outcome{Final: true, Err: errors.New(long)},
			journal.AttemptEntry{Outcome: "failed permanently", Error: long[:256] + "…"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &handlers.Handler{ID: "provision", Reason: cause.Create}
				j := newServingJournal(journal.RetentionLimits{}, h)
				a := attemptOf(h, 2, c.outcome)
				a.Duration = 1234567 * time.Nanosecond
				widgetsOf(j).ForObject(w1, "u1").RecordAttempt(a)
				c.want.Handler, c.want.Purpose, c.want.Number, c.want.Seconds = "provision", "create", 3, 0.001235
				if d := cmp.Diff(&c.want, lastEntry(t, j).Attempt); d != "" {
					t.Errorf("%s; -want, +got:\n%s", c.reason, d)
				}
			})
		})
	}
}

func ptr[T any](of T) *T { return &of }

// TestWrites shows that the journal keeps the paths of writes, but no values.
func TestWrites(t *testing.T) {
	none := func(map[string]any) error { return nil }
	held := func(names ...any) map[string]any {
		return map[string]any{"metadata": map[string]any{"finalizers": names}}
	}
	many := map[string]any{}
	for i := range 13 {
		many[fmt.Sprintf("key%02d", i)] = "value"
	}
	twelve := []string{
		"key00", "key01", "key02", "key03", "key04", "key05", "key06", "key07", "key08", "key09", "key10", "key11",
	}
	most := map[string]any{}
	for _, key := range twelve {
		most[key] = "value"
	}
	cases := map[string]struct {
		reason string
		patch  patching.Patch
		before map[string]any
		result patching.WriteResult
		err    error
		want   *journal.Write
	}{
		"nothing": {reason: "a write without anything to send is not noted"},
		"three keys": {reason: "paths are kept to a depth of three keys",
			patch: patching.Patch{Merge: map[string]any{"status": map[string]any{
				"a": map[string]any{"b": map[string]any{"c": "secret"}}, "d": []any{"secret"},
			}}},
			result: written, want: &journal.Write{Paths: []string{"status.a.b", "status.d"}}},
		"removals": {reason: "removed fields are marked",
			patch:  patching.Patch{Merge: map[string]any{"status": map[string]any{"a": nil, "b": int64(1)}}},
			result: written, want: &journal.Write{Paths: []string{"-status.a", "status.b"}}},
		"beside each other": {reason: "sibling fields have separate paths",
			patch: patching.Patch{Merge: map[string]any{
				"a": map[string]any{"b": map[string]any{"c": "1", "d": "2", "e": "3"}, "f": "4"}, "g": "5",
			}},
			result: written, want: &journal.Write{Paths: []string{"a.b.c", "a.b.d", "a.b.e", "a.f", "g"}}},
		"long keys": {reason: "long keys are cut, also those of removed fields",
			patch: patching.Patch{Merge: map[string]any{
				strings.Repeat("k", 300): "1", strings.Repeat("l", 300): nil,
			}},
			result: written, want: &journal.Write{Paths: []string{
				"-" + strings.Repeat("l", 256) + "…", strings.Repeat("k", 256) + "…",
			}}},
		"most": {reason: "twelve paths are kept in full", patch: patching.Patch{Merge: most}, result: written,
			want: &journal.Write{Paths: twelve}},
		"too many": {reason: "paths beyond the twelfth are replaced by a remark",
			patch: patching.Patch{Merge: many}, result: written,
			want: &journal.Write{Paths: append(twelve[:12:12], "and more")}},
		"finalizer added": {reason: "an added finalizer is not attributed to handlers",
			patch:  patching.Patch{Transforms: []patching.Transform{none}},
			before: map[string]any{}, result: patching.WriteResult{Body: held("ours")},
			want: &journal.Write{Paths: []string{"metadata.finalizers"}}},
		"finalizer removed": {reason: "a removed finalizer is noted beside the changes of handlers",
			patch:  patching.Patch{Transforms: []patching.Transform{none, none}},
			before: held("ours", "theirs"), result: patching.WriteResult{Body: held("theirs")},
			want: &journal.Write{Paths: []string{"metadata.finalizers", "changes by handlers"}}},
		"handlers": {reason: "a transformation with unchanged finalizers is noted as changes by handlers",
			patch:  patching.Patch{Transforms: []patching.Transform{none}},
			before: held("ours"), result: patching.WriteResult{Body: held("ours")},
			want: &journal.Write{Paths: []string{"changes by handlers"}}},
		"gone": {reason: "a write to a deleted object is noted",
			patch: patching.Patch{Merge: map[string]any{"status": "x"}}, before: held("ours"),
			result: patching.WriteResult{Gone: true}, want: &journal.Write{Paths: []string{"status"}}},
		"failed": {reason: "a failed write is noted with its paths and error",
			patch: patching.Patch{Merge: map[string]any{"status": "x"}}, before: held("ours"), err: errQuota,
			want: &journal.Write{Paths: []string{"status"}, Error: "no quota"}},
		"status refused": {reason: "a refused status is noted with its error",
			patch:  patching.Patch{Merge: map[string]any{"status": "x"}},
			result: patching.WriteResult{Body: map[string]any{}, StatusRefusal: errQuota},
			want:   &journal.Write{Paths: []string{"status"}, Error: "no quota"}},
		"failed as a whole": {reason: "the error of the whole write takes precedence over that of the status",
			patch:  patching.Patch{Merge: map[string]any{"status": "x"}},
			result: patching.WriteResult{Body: map[string]any{}, StatusRefusal: errors.New("status")}, err: errQuota,
			want: &journal.Write{Paths: []string{"status"}, Error: "no quota"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			j := newServingJournal(journal.RetentionLimits{})
			o := widgetsOf(j).ForObject(w1, "u1")
			o.RecordEvent("ADDED", "1")
			o.RecordWrite("", c.patch, c.before, c.result, c.err)
			if d := cmp.Diff(c.want, lastEntry(t, j).Write); d != "" {
				t.Errorf("%s; -want, +got:\n%s", c.reason, d)
			}
		})
	}
}

// TestWriters shows that a write is noted with its writer.
func TestWriters(t *testing.T) {
	j := newServingJournal(journal.RetentionLimits{})
	widgetsOf(j).ForObject(w1, "u1").RecordWrite("watches", patching.Patch{}, nil, written, nil)
	if got := lastEntry(t, j).Write; got.Origin != "watches" {
		t.Errorf("want the handler named, got %+v", got)
	}
}

// TestHolds shows that a hold is noted with its end, if that is known.
func TestHolds(t *testing.T) {
	zone := time.FixedZone("there", 3600)
	until := time.Date(2000, 1, 1, 1, 0, 0, 0, zone)
	cases := map[string]struct {
		reason string
		err    error
		until  time.Time
		want   journal.Hold
	}{
		"event": {"a hold until the next event does not have an end",
			errQuota, noTime, journal.Hold{Error: "no quota"}},
		"time": {"the end of a hold is noted in UTC",
			errQuota, until, journal.Hold{Error: "no quota", Until: ptr(until.UTC())}},
		"no error": {"a hold without an error is noted", nil, noTime, journal.Hold{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			j := newServingJournal(journal.RetentionLimits{})
			widgetsOf(j).ForObject(w1, "u1").RecordHold(journal.HeldError, c.err, c.until)
			c.want.Reason = journal.HeldError
			got := lastEntry(t, j).Hold
			if d := cmp.Diff(&c.want, got); d != "" {
				t.Errorf("%s; -want, +got:\n%s", c.reason, d)
			}
			if got.Until != nil && got.Until.Location() != time.UTC {
				t.Errorf("%s: the end is %s", c.reason, got.Until)
			}
		})
	}
}

// TestErrorsOfObjectsWithSecrets shows that error texts are withheld for objects with secret values, which they may
// quote.
func TestErrorsOfObjectsWithSecrets(t *testing.T) {
	const withheld = "(left out, because the object has secret values; see the log)"
	j := newServingJournal(journal.RetentionLimits{})
	o := widgetsOf(j, diff.Path{"spec", "password"}).ForObject(w1, "u1")
	o.RecordAttempt(attemptOf(&handlers.Handler{ID: "h"}, 0, execution.Outcome{Final: true, Err: errQuota}))
	if got := lastEntry(t, j).Attempt.Error; got != withheld {
		t.Errorf("the text of a handler's error is kept: %s", got)
	}
	o.RecordWrite("", patching.Patch{Merge: map[string]any{"spec": "x"}}, nil, patching.WriteResult{}, errQuota)
	if got := lastEntry(t, j).Write.Error; got != withheld {
		t.Errorf("the text of the server's error is kept: %s", got)
	}
	o.RecordHold(journal.HeldError, errQuota, noTime)
	if got := lastEntry(t, j).Hold.Error; got != withheld {
		t.Errorf("the text of the framework's error is kept: %s", got)
	}
	o.RecordAttempt(attemptOf(&handlers.Handler{ID: "h"}, 0, execution.Outcome{Final: true}))
	if got := lastEntry(t, j).Attempt.Error; got != "" {
		t.Errorf("a text is withheld although there is no error: %s", got)
	}
}
