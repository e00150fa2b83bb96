package inspection_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/inspection"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/test/kits/journaltest"
)

// TestStateOfSeveral shows the state of an object with several handlers.
func TestStateOfSeveral(t *testing.T) {
	t.Parallel()
	again := journaltest.NewHandler("provision", "update")
	for name, c := range map[string]struct {
		reason string
		tell   func(story)
		want   inspection.ObjectCondition
		until  time.Duration
		says   string
	}{
		"the first": {
			reason: "of several retries, the time of the earliest is shown",
			tell: func(s story) {
				s.RecordCall(create, 1, retried(time.Hour)).RecordCall(otherCreateHandler, 1, retried(time.Minute))
				s.RecordCall(update, 1, retried(time.Hour))
			},
			want: inspection.Retrying, until: time.Minute, says: "called provision: attempt 1 failed",
		},
		"no time": {
			reason: "a handler that is retried at once does not hide the retry time of another one",
			tell: func(s story) {
				s.RecordCall(create, 1, retried(time.Minute)).RecordCall(otherCreateHandler, 1,
					execution.Outcome{Err: errBroken})
			},
			want: inspection.Retrying, until: time.Minute, says: "called provision: attempt 1 failed",
		},
		"one id": {
			reason: "another cause ends the retry of a handler, even if a handler of the same id is called",
			tell: func(s story) {
				s.RecordCall(create, 1, retried(time.Minute))
				s.RecordEvaluation("update", verdict{Handler: again}).RecordCall(again, 1, succeeded())
			},
			want: inspection.Handled, says: "called provision",
		},
		"finished": {
			reason: "a permanently failed handler that is finished remains a failure",
			tell: func(s story) {
				s.RecordCall(create, 1, failed())
				s.RecordEvaluation("create", verdict{Handler: create, Reason: execution.Finished},
					verdict{Handler: otherCreateHandler, Reason: execution.Asleep})
			},
			want: inspection.Failed, says: "called provision: attempt 1 " + journal.Failed + ": no quota",
		},
		"finished well": {
			reason: "a retry ends if the handler turns out to be finished",
			tell: func(s story) {
				s.RecordCall(create, 1, retried(time.Minute))
				s.RecordEvaluation("create", verdict{Handler: create, Reason: execution.Finished})
			},
			want: inspection.Handled, says: "called provision",
		},
		"skipped it": {
			reason: "an evaluation that skips a handler for its cause is not shown as the last decision",
			tell: func(s story) {
				s.RecordCall(create, 1, succeeded()).RecordEvaluation("update",
					verdict{Handler: create, Reason: execution.OtherReason})
			},
			want: inspection.Handled, says: "called provision: attempt 1 succeeded",
		},
		"sub-handler without a handler": {
			reason: "a sub-handler is not retried if its handler is skipped for its cause",
			tell: func(s story) {
				s.RecordCall(subHandler, 1, retried(time.Minute))
				s.RecordEvaluation("update", verdict{Handler: create, Reason: execution.OtherReason})
			},
			want: inspection.Handled, says: "skipped provision (other reason)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j, now := journal.New(journal.RetentionLimits{}), time.Now().UTC()
				c.tell(journaltest.StartStory(j, widgets, "default", "one"))
				got := inspection.NewOverview(j).QueryView(inspection.Query{Limit: 9}).Objects[0]
				var until time.Duration
				if got.Until != nil {
					until = got.Until.Sub(now)
				}
				if got.State != c.want || until != c.until || !strings.Contains(got.Text, c.says) {
					t.Errorf("%s: want %s for %s with %q, got %+v", c.reason, c.want, c.until, c.says, got)
				}
			})
		})
	}
}

// TestEventsBesideChanges shows that a rejected raw event does not change the state of handlers of changes.
func TestEventsBesideChanges(t *testing.T) {
	t.Parallel()
	j := journal.New(journal.RetentionLimits{})
	journaltest.StartStory(j, widgets, "default", "one").RecordCall(create, 1, retried(time.Minute))
	key := types.NamespacedName{Namespace: "default", Name: "one"}
	look := j.ForKind(schema.GroupKind{Group: "example.org", Kind: "Widget"}, nil).ForObject(key, "uid-one").
		StartEventEvaluation(&cause.Cause{EventType: "MODIFIED"})
	look.AddVerdict(event, execution.Stop{Adapter: "Filters", Reason: execution.FilteredOut})
	look.AddToJournal()
	got := inspection.NewOverview(j).QueryView(inspection.Query{Limit: 9})
	if got.Objects[0].State != inspection.Retrying || got.RetryCount != 1 {
		t.Errorf("the retry is lost: %+v", got)
	}
}

// TestRetriesWithoutTime shows that immediate retries come before those with a time, in the order of their objects.
func TestRetriesWithoutTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := journal.New(journal.RetentionLimits{})
		at := map[string]execution.Outcome{
			"a": retried(time.Minute), "b": {Err: errBroken}, "c": retried(time.Second),
			"d": {Err: errBroken},
			"e": retried(time.Hour),
		}
		for _, name := range []string{"e", "d", "c", "b", "a"} {
			journaltest.StartStory(j, widgets, "default", name).RecordCall(create, 1, at[name])
			time.Sleep(time.Millisecond)
		}
		var got []string
		for _, r := range inspection.NewOverview(j).QueryView(inspection.Query{Limit: 9}).Retries {
			got = append(got, r.Name)
		}
		if diff := cmp.Diff([]string{"d", "b", "c", "a", "e"}, got); diff != "" {
			t.Errorf("the retries are in another order (-want, +got):\n%s", diff)
		}
	})
}

// TestLongSentences shows that sentences beyond the limit are cut, between whole characters.
func TestLongSentences(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason, text, want string
	}{
		"fits":     {"a sentence at the limit is kept", strings.Repeat("x", 200), strings.Repeat("x", 200)},
		"too long": {"a sentence beyond the limit is cut", strings.Repeat("x", 201), strings.Repeat("x", 200) + "…"},
		"wide":     {"the limit counts characters, not bytes", strings.Repeat("ä", 120), strings.Repeat("ä", 120)},
		"too wide": {"a sentence of wide characters below the limit is kept",
			strings.Repeat("ä", 127), strings.Repeat("ä", 127)},
		"short one": {"a short sentence is kept", "boo", "boo"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j, after := journal.New(journal.RetentionLimits{}), time.Minute
			journaltest.StartStory(j, widgets, "default", "one").
				RecordCall(create, 1, execution.Outcome{Err: errors.New(c.text), Delay: &after})
			if got := inspection.NewOverview(j).QueryView(inspection.Query{Limit: 9}).Retries[0].Error; got != c.want {
				t.Errorf("%s: want %q, got %q", c.reason, c.want, got)
			}
		})
	}
}

// TestNewEntriesAreSeen shows that new entries appear in the overview after half a second.
func TestNewEntriesAreSeen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := journal.New(journal.RetentionLimits{})
		o := inspection.NewOverview(j)
		for _, c := range []struct {
			after time.Duration
			want  int
		}{{0, 0}, {499 * time.Millisecond, 0}, {time.Millisecond, 2}} {
			time.Sleep(c.after)
			if got := o.QueryView(inspection.Query{}).Total; got != c.want {
				t.Errorf("after %s more: want %d objects, got %d", c.after, c.want, got)
			}
			journaltest.StartStory(j, widgets, "default", "one").RecordEvent("ADDED")
			journaltest.StartStory(j, widgets, "default", "two").RecordEvent("ADDED")
		}
	})
}
