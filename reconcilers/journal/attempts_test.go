package journal_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// written is what comes of a write that the server has taken.
var written = patching.Result{Body: map[string]any{}}

// noTime is when nobody knows.
var noTime time.Time

var errQuota = errors.New("no quota")

func attemptOf(h *handlers.Handler, retry int, o execution.Outcome) *execution.Attempt {
	a := execution.New(h, &cause.Cause{Reason: cause.Create}, nil)
	a.Call.Retry, a.Outcome = retry, o
	return a
}

// lastOf is what was noted last.
func lastOf(t *testing.T, j *journal.Journal) journal.Entry {
	t.Helper()
	all := explained(t, j, w1).History
	if len(all) == 0 {
		t.Fatal("nothing is noted")
	}
	return all[len(all)-1]
}

// What came of a call is said in the words of the outcome.
func TestAttempts(t *testing.T) {
	minute, none := time.Minute, time.Duration(0)
	due := time.Date(2000, 1, 1, 0, 1, 0, 0, time.UTC)
	long := strings.Repeat("x", 300)
	cases := map[string]struct {
		reason  string
		outcome execution.Outcome
		want    journal.Attempt
	}{
		"blocked": {"a retry is useless; it is aborted as well", execution.Outcome{Blocked: true, Aborted: true},
			journal.Attempt{Outcome: "cannot be called with the object"}},
		"interrupted": {"the operator exits", execution.Outcome{Aborted: true, Err: errQuota},
			journal.Attempt{Outcome: "interrupted", Error: "no quota"}},
		"ignored": {"the error is told, though it counts as a success",
			execution.Outcome{Final: true, Ignored: errQuota},
			journal.Attempt{Outcome: "failed; its errors are ignored", Error: "no quota"}},
		"succeeded": {"there is nothing more to be said", execution.Outcome{Final: true},
			journal.Attempt{Outcome: "succeeded"}},
		"failed": {"it is not called again", execution.Outcome{Final: true, Err: errQuota},
			journal.Attempt{Outcome: "failed permanently", Error: "no quota"}},
		"final with delay": {"it is not called again, whatever the delay is",
			execution.Outcome{Final: true, Err: errQuota, Delay: &minute},
			journal.Attempt{Outcome: "failed permanently", Error: "no quota"}},
		"waiting": {"there is no error, and it is not finished", execution.Outcome{Delay: &minute},
			journal.Attempt{Outcome: "waiting", Next: &due}},
		"pending": {"to wait for others is no failure",
			execution.Outcome{Err: fmt.Errorf("wrapped: %w", &execution.PendingError{}), Delay: &minute},
			journal.Attempt{
				Outcome: "waiting", Next: &due, Error: fmt.Sprintf("wrapped: %v", &execution.PendingError{}),
			}},
		"retried": {"it is told when", execution.Outcome{Err: errQuota, Delay: &minute},
			journal.Attempt{Outcome: "failed; retrying", Error: "no quota", Next: &due}},
		"at once": {"it is due now", execution.Outcome{Err: errQuota, Delay: &none},
			journal.Attempt{Outcome: "failed; retrying", Error: "no quota", Next: ptr(due.Add(-minute))}},
		"no delay": {"it is not told when", execution.Outcome{Err: errQuota},
			journal.Attempt{Outcome: "failed; retrying", Error: "no quota"}},
		"long": {"its beginning is kept", execution.Outcome{Final: true, Err: errors.New(long)},
			journal.Attempt{Outcome: "failed permanently", Error: long[:256] + "…"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &handlers.Handler{ID: "provision", Reason: cause.Create}
				j := kept(journal.Limits{}, h)
				a := attemptOf(h, 2, c.outcome)
				a.Took = 1234567 * time.Nanosecond
				widgetsOf(j).Object(w1, "u1").Attempt(a)
				c.want.Handler, c.want.On, c.want.Number, c.want.Took = "provision", "create", 3, 0.001235
				if d := cmp.Diff(&c.want, lastOf(t, j).Attempt); d != "" {
					t.Errorf("%s; -want, +got:\n%s", c.reason, d)
				}
			})
		})
	}
}

func ptr[T any](of T) *T { return &of }

// Of writes, the places are kept, and no values.
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
		result patching.Result
		err    error
		want   *journal.Write
	}{
		"nothing": {reason: "nothing had to be sent"},
		"three keys": {reason: "deeper than that, it is not of interest",
			patch: patching.Patch{Merge: map[string]any{"status": map[string]any{
				"a": map[string]any{"b": map[string]any{"c": "secret"}}, "d": []any{"secret"},
			}}},
			result: written, want: &journal.Write{What: []string{"status.a.b", "status.d"}}},
		"removals": {reason: "they are told apart",
			patch:  patching.Patch{Merge: map[string]any{"status": map[string]any{"a": nil, "b": int64(1)}}},
			result: written, want: &journal.Write{What: []string{"-status.a", "status.b"}}},
		"beside each other": {reason: "each has its own path",
			patch: patching.Patch{Merge: map[string]any{
				"a": map[string]any{"b": map[string]any{"c": "1", "d": "2", "e": "3"}, "f": "4"}, "g": "5",
			}},
			result: written, want: &journal.Write{What: []string{"a.b.c", "a.b.d", "a.b.e", "a.f", "g"}}},
		"long keys": {reason: "users may choose any, and remove them",
			patch: patching.Patch{Merge: map[string]any{
				strings.Repeat("k", 300): "1", strings.Repeat("l", 300): nil,
			}},
			result: written, want: &journal.Write{What: []string{
				"-" + strings.Repeat("l", 256) + "…", strings.Repeat("k", 256) + "…",
			}}},
		"most": {reason: "there is room for these", patch: patching.Patch{Merge: most}, result: written,
			want: &journal.Write{What: twelve}},
		"too many": {reason: "the rest is left out", patch: patching.Patch{Merge: many}, result: written,
			want: &journal.Write{What: append(twelve[:12:12], "and more")}},
		"finalizer added": {reason: "it is our own transformation",
			patch:  patching.Patch{Transforms: []patching.Transform{none}},
			before: map[string]any{}, result: patching.Result{Body: held("ours")},
			want: &journal.Write{What: []string{"metadata.finalizers"}}},
		"finalizer removed": {reason: "and those of handlers are not it",
			patch:  patching.Patch{Transforms: []patching.Transform{none, none}},
			before: held("ours", "theirs"), result: patching.Result{Body: held("theirs")},
			want: &journal.Write{What: []string{"metadata.finalizers", "changes by handlers"}}},
		"handlers": {reason: "what functions do is not known",
			patch:  patching.Patch{Transforms: []patching.Transform{none}},
			before: held("ours"), result: patching.Result{Body: held("ours")},
			want: &journal.Write{What: []string{"changes by handlers"}}},
		"gone": {reason: "it was sent, though the object is no more",
			patch: patching.Patch{Merge: map[string]any{"status": "x"}}, before: held("ours"),
			result: patching.Result{Gone: true}, want: &journal.Write{What: []string{"status"}}},
		"failed": {reason: "what was tried is told as well",
			patch: patching.Patch{Merge: map[string]any{"status": "x"}}, before: held("ours"), err: errQuota,
			want: &journal.Write{What: []string{"status"}, Error: "no quota"}},
		"status refused": {reason: "the rest was written",
			patch:  patching.Patch{Merge: map[string]any{"status": "x"}},
			result: patching.Result{Body: map[string]any{}, StatusRefused: errQuota},
			want:   &journal.Write{What: []string{"status"}, Error: "no quota"}},
		"failed as a whole": {reason: "that is more than the status",
			patch:  patching.Patch{Merge: map[string]any{"status": "x"}},
			result: patching.Result{Body: map[string]any{}, StatusRefused: errors.New("status")}, err: errQuota,
			want: &journal.Write{What: []string{"status"}, Error: "no quota"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			j := kept(journal.Limits{})
			o := widgetsOf(j).Object(w1, "u1")
			o.Event("ADDED", "1")
			o.Wrote("", c.patch, c.before, c.result, c.err)
			if d := cmp.Diff(c.want, lastOf(t, j).Write); d != "" {
				t.Errorf("%s; -want, +got:\n%s", c.reason, d)
			}
		})
	}
}

// Whoever has written is named.
func TestWriters(t *testing.T) {
	j := kept(journal.Limits{})
	widgetsOf(j).Object(w1, "u1").Wrote("watches", patching.Patch{}, nil, written, nil)
	if got := lastOf(t, j).Write; got.By != "watches" {
		t.Errorf("want the handler named, got %+v", got)
	}
}

// What holds an object says until when, if that is known.
func TestHolds(t *testing.T) {
	zone := time.FixedZone("there", 3600)
	until := time.Date(2000, 1, 1, 1, 0, 0, 0, zone)
	cases := map[string]struct {
		reason string
		err    error
		until  time.Time
		want   journal.Hold
	}{
		"event":    {"nobody knows when", errQuota, noTime, journal.Hold{Error: "no quota"}},
		"time":     {"all times are UTC", errQuota, until, journal.Hold{Error: "no quota", Until: ptr(until.UTC())}},
		"no error": {"there may be none", nil, noTime, journal.Hold{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			j := kept(journal.Limits{})
			widgetsOf(j).Object(w1, "u1").Hold(journal.HeldError, c.err, c.until)
			c.want.Why = journal.HeldError
			got := lastOf(t, j).Hold
			if d := cmp.Diff(&c.want, got); d != "" {
				t.Errorf("%s; -want, +got:\n%s", c.reason, d)
			}
			if got.Until != nil && got.Until.Location() != time.UTC {
				t.Errorf("%s: it is %s", c.reason, got.Until)
			}
		})
	}
}

// Texts of errors may quote the object, so they are not kept where it has secret values.
func TestErrorsOfObjectsWithSecrets(t *testing.T) {
	const withheld = "(left out, because the object has secret values; see the log)"
	j := kept(journal.Limits{})
	o := widgetsOf(j, diff.Path{"spec", "password"}).Object(w1, "u1")
	o.Attempt(attemptOf(&handlers.Handler{ID: "h"}, 0, execution.Outcome{Final: true, Err: errQuota}))
	if got := lastOf(t, j).Attempt.Error; got != withheld {
		t.Errorf("the text of a handler's error is kept: %s", got)
	}
	o.Wrote("", patching.Patch{Merge: map[string]any{"spec": "x"}}, nil, patching.Result{}, errQuota)
	if got := lastOf(t, j).Write.Error; got != withheld {
		t.Errorf("the text of the server's error is kept: %s", got)
	}
	o.Hold(journal.HeldError, errQuota, noTime)
	if got := lastOf(t, j).Hold.Error; got != withheld {
		t.Errorf("the text of the framework's error is kept: %s", got)
	}
	o.Attempt(attemptOf(&handlers.Handler{ID: "h"}, 0, execution.Outcome{Final: true}))
	if got := lastOf(t, j).Attempt.Error; got != "" {
		t.Errorf("there is no error, and its text is withheld: %s", got)
	}
}
