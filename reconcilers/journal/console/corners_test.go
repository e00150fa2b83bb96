package console_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal/console"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal/journaltest"
)

// States in which more than one handler has a say.
func TestStateOfSeveral(t *testing.T) {
	t.Parallel()
	again := journaltest.Handler("provision", "update")
	for name, c := range map[string]struct {
		reason string
		tell   func(story)
		want   console.State
		until  time.Duration
		says   string
	}{
		"the first": {
			reason: "of two that are tried again, the first one counts",
			tell: func(s story) {
				s.Call(create, 1, retried(time.Hour)).Call(other, 1, retried(time.Minute))
				s.Call(update, 1, retried(time.Hour))
			},
			want: console.Retrying, until: time.Minute, says: "called provision: attempt 1 failed",
		},
		"no time": {
			reason: "one that is tried again at once has no time, and says nothing of that of others",
			tell: func(s story) {
				s.Call(create, 1, retried(time.Minute)).Call(other, 1, execution.Outcome{Err: errBroken})
			},
			want: console.Retrying, until: time.Minute, says: "called provision: attempt 1 failed",
		},
		"one id": {
			reason: "the handler of the same id for another change is another one, so the first is not asked any more",
			tell: func(s story) {
				s.Call(create, 1, retried(time.Minute))
				s.Look("update", verdict{Handler: again}).Call(again, 1, succeeded())
			},
			want: console.Handled, says: "called provision",
		},
		"finished": {
			reason: "one that failed permanently is finished, and that repairs nothing",
			tell: func(s story) {
				s.Call(create, 1, failed())
				s.Look("create", verdict{Handler: create, Why: execution.Finished},
					verdict{Handler: other, Why: execution.Asleep})
			},
			want: console.Failed, says: "called provision: attempt 1 " + journal.Failed + ": no quota",
		},
		"finished well": {
			reason: "what was tried again has been finished by somebody else",
			tell: func(s story) {
				s.Call(create, 1, retried(time.Minute))
				s.Look("create", verdict{Handler: create, Why: execution.Finished})
			},
			want: console.Handled, says: "called provision",
		},
		"skipped it": {
			reason: "that a handler is for something else is not what was decided last",
			tell: func(s story) {
				s.Call(create, 1, succeeded()).Look("update", verdict{Handler: create, Why: execution.OtherReason})
			},
			want: console.Handled, says: "called provision: attempt 1 succeeded",
		},
		"sub-handler of nobody": {
			reason: "its handler is for something else, so nobody goes on with it",
			tell: func(s story) {
				s.Call(sub, 1, retried(time.Minute))
				s.Look("update", verdict{Handler: create, Why: execution.OtherReason})
			},
			want: console.Handled, says: "skipped provision (other reason)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j, now := journal.New(journal.Limits{}), time.Now().UTC()
				c.tell(journaltest.Of(j, widgets, "default", "one"))
				got := console.NewOverview(j).Look(console.Query{Most: 9}).Objects[0]
				var until time.Duration
				if got.Until != nil {
					until = got.Until.Sub(now)
				}
				if got.State != c.want || until != c.until || !strings.Contains(got.Says, c.says) {
					t.Errorf("%s: want %s for %s with %q, got %+v", c.reason, c.want, c.until, c.says, got)
				}
			})
		})
	}
}

// A raw event that nobody wants says nothing of what handlers of changes do.
func TestEventsBesideChanges(t *testing.T) {
	t.Parallel()
	j := journal.New(journal.Limits{})
	journaltest.Of(j, widgets, "default", "one").Call(create, 1, retried(time.Minute))
	key := types.NamespacedName{Namespace: "default", Name: "one"}
	look := j.Kind(schema.GroupKind{Group: "example.org", Kind: "Widget"}, nil).Object(key, "uid-one").
		LookAtEvent(&cause.Cause{Type: "MODIFIED"})
	look.Verdict(event, execution.Stop{By: "Filters", Why: execution.FilteredOut})
	look.Note()
	if got := console.NewOverview(j).Look(console.Query{Most: 9}); got.Objects[0].State != console.Retrying ||
		got.Retrying != 1 {
		t.Errorf("the retry is forgotten: %+v", got)
	}
}

// What is tried again at once comes before all that has a time, in the order of the objects.
func TestRetriesWithoutTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := journal.New(journal.Limits{})
		at := map[string]execution.Outcome{
			"a": retried(time.Minute), "b": {Err: errBroken}, "c": retried(time.Second), "d": {Err: errBroken},
			"e": retried(time.Hour),
		}
		for _, name := range []string{"e", "d", "c", "b", "a"} {
			journaltest.Of(j, widgets, "default", name).Call(create, 1, at[name])
			time.Sleep(time.Millisecond)
		}
		var got []string
		for _, r := range console.NewOverview(j).Look(console.Query{Most: 9}).Retries {
			got = append(got, r.Name)
		}
		if diff := cmp.Diff([]string{"d", "b", "c", "a", "e"}, got); diff != "" {
			t.Errorf("the retries stand in another order (-want, +got):\n%s", diff)
		}
	})
}

// Long sentences are cut at whole characters, and only if they are too long.
func TestLongSentences(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason, text, want string
	}{
		"fits":      {"it is as long as it may be", strings.Repeat("x", 200), strings.Repeat("x", 200)},
		"too long":  {"one character is too many", strings.Repeat("x", 201), strings.Repeat("x", 200) + "…"},
		"wide":      {"characters count, not bytes", strings.Repeat("ä", 120), strings.Repeat("ä", 120)},
		"too wide":  {"it is cut between two of them", strings.Repeat("ä", 127), strings.Repeat("ä", 127)},
		"short one": {"there is nothing to be cut", "boo", "boo"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j, after := journal.New(journal.Limits{}), time.Minute
			journaltest.Of(j, widgets, "default", "one").
				Call(create, 1, execution.Outcome{Err: errors.New(c.text), Delay: &after})
			if got := console.NewOverview(j).Look(console.Query{Most: 9}).Retries[0].Error; got != c.want {
				t.Errorf("%s: want %q, got %q", c.reason, c.want, got)
			}
		})
	}
}

// After half a second, what is new is seen.
func TestNewEntriesAreSeen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := journal.New(journal.Limits{})
		o := console.NewOverview(j)
		for _, c := range []struct {
			after time.Duration
			want  int
		}{{0, 0}, {499 * time.Millisecond, 0}, {time.Millisecond, 2}} {
			time.Sleep(c.after)
			if got := o.Look(console.Query{}).Known; got != c.want {
				t.Errorf("after %s more: want %d objects, got %d", c.after, c.want, got)
			}
			journaltest.Of(j, widgets, "default", "one").Event("ADDED")
			journaltest.Of(j, widgets, "default", "two").Event("ADDED")
		}
	})
}
