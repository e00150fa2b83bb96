package inspection_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/inspection"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/test/kits/journaltest"
)

type (
	story   = journaltest.Story
	verdict = journaltest.EvaluationVerdict
)

var (
	widgets = journaltest.NamespacedResource("example.org", "Widget", "widgets")
	gadgets = journaltest.NamespacedResource("", "Gadget", "gadgets")

	create             = journaltest.NewHandler("provision", "create")
	otherCreateHandler = journaltest.NewHandler("announce", "create")
	update             = journaltest.NewHandler("resize", "update")
	timer              = journaltest.NewHandler("backup", "timer")
	daemon             = journaltest.NewHandler("tail", "daemon")
	event              = journaltest.NewHandler("count", "event")
	subHandler         = journaltest.NewHandler("provision/disk", "sub-handler")

	errBroken = errors.New("no quota")
)

func succeeded() execution.Outcome { return execution.Outcome{Final: true} }
func failed() execution.Outcome    { return execution.Outcome{Final: true, Err: errBroken} }

func retried(after time.Duration) execution.Outcome {
	return execution.Outcome{Err: errBroken, Delay: &after}
}

// waits returns the outcome of a function that continues later, without an error.
func waits(after time.Duration) execution.Outcome { return execution.Outcome{Delay: &after} }

// TestState shows that the entries of an object lead to one state, with the time of the next action.
func TestState(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason, says string
		tell         func(story, time.Time)
		want         inspection.ObjectCondition
		until        time.Duration
	}{
		"seen": {
			reason: "an object with an event, but without an evaluation, is seen",
			tell:   func(s story, _ time.Time) { s.RecordEvent("ADDED") },
			want:   inspection.Seen, says: "event ADDED",
		},
		"running": {
			reason: "a selected handler without an outcome is running",
			tell: func(s story, _ time.Time) {
				s.RecordEvent("ADDED").RecordEvaluation("create", verdict{Handler: create})
			},
			want: inspection.Running, says: "evaluated a creation; selected provision",
		},
		"handled": {
			reason: "the event of an own write does not replace the last call",
			tell: func(s story, _ time.Time) {
				s.RecordEvaluation("create", verdict{Handler: create}).RecordCall(create, 1,
					succeeded()).RecordEvent("MODIFIED").RecordEvaluation("noop")
			},
			want: inspection.Handled, says: "called provision: attempt 1 succeeded",
		},
		"unchanged": {
			reason: "an object without any change is unchanged",
			tell:   func(s story, _ time.Time) { s.RecordEvent("ADDED").RecordEvaluation("noop") },
			want:   inspection.Unchanged, says: "no essential change",
		},
		"not wanted": {
			reason: "an object without a handler for its cause is unchanged",
			tell: func(s story, _ time.Time) {
				s.RecordEvaluation("update", verdict{Handler: create, Reason: execution.OtherReason})
			},
			want: inspection.Unchanged, says: "skipped provision (other reason)",
		},
		"retrying": {
			reason: "a failed call is retrying, with the time of the next attempt",
			tell: func(s story, _ time.Time) {
				s.RecordEvaluation("create", verdict{Handler: create}).RecordCall(create, 1, retried(time.Minute))
			},
			want: inspection.Retrying, until: time.Minute,
			says: "attempt 1 failed; retrying: no quota",
		},
		"retrying, looked at": {
			reason: "an evaluation between two attempts does not replace the failure",
			tell: func(s story, now time.Time) {
				s.RecordEvaluation("create", verdict{Handler: create}).RecordCall(create, 1,
					retried(time.Minute)).RecordEvent("MODIFIED")
				s.RecordEvaluation("create", verdict{Handler: create, Reason: execution.Asleep,
					Until: now.Add(time.Minute)})
			},
			want: inspection.Retrying, until: time.Minute,
			says: "called provision: attempt 1 failed; retrying: no quota",
		},
		"retried with success": {
			reason: "a later success replaces the failure",
			tell: func(s story, _ time.Time) {
				s.RecordEvaluation("create", verdict{Handler: create}).RecordCall(create, 1, retried(time.Minute))
				s.RecordEvaluation("create", verdict{Handler: create}).RecordCall(create, 2, succeeded())
			},
			want: inspection.Handled, says: "attempt 2 succeeded",
		},
		"waiting": {
			reason: "a handler that continues later without an error is waiting",
			tell: func(s story, _ time.Time) {
				s.RecordEvaluation("create", verdict{Handler: create}).RecordCall(create, 1, waits(time.Hour))
			},
			want: inspection.Waiting, until: time.Hour, says: "attempt 1 waiting",
		},
		"waiting for others": {
			reason: "a handler that waits for another one is waiting",
			tell: func(s story, _ time.Time) {
				s.RecordEvaluation("create", verdict{Handler: create},
					verdict{Handler: otherCreateHandler, Reason: execution.DependencyUnfinished})
				s.RecordCall(create, 1, succeeded())
			},
			want: inspection.Waiting, says: "skipped announce (awaiting others)",
		},
		"worst first": {
			reason: "a permanent failure takes precedence over a retry",
			tell: func(s story, _ time.Time) {
				s.RecordEvaluation("create", verdict{Handler: create}, verdict{Handler: otherCreateHandler})
				s.RecordCall(create, 1, failed()).RecordCall(otherCreateHandler, 1, retried(time.Minute))
			},
			want: inspection.Failed, says: "called provision: attempt 1 " + journal.Failed + ": no quota",
		},
		"failed, then quiet": {
			reason: "a pass without changes does not replace the failure",
			tell: func(s story, _ time.Time) {
				s.RecordEvaluation("create", verdict{Handler: create}).RecordCall(create, 1,
					failed()).RecordEvent("MODIFIED").RecordEvaluation("noop")
			},
			want: inspection.Failed, says: "attempt 1 " + journal.Failed + ": no quota",
		},
		"failed, then updated": {
			reason: "a change that was handled replaces the failure of a superseded one",
			tell: func(s story, _ time.Time) {
				s.RecordEvaluation("create", verdict{Handler: create}).RecordCall(create, 1, failed())
				s.RecordEvaluation("update", verdict{Handler: create, Reason: execution.OtherReason},
					verdict{Handler: update})
				s.RecordCall(update, 1, succeeded())
			},
			want: inspection.Handled, says: "called resize",
		},
		"retry given up": {
			reason: "a retry ends if its change was undone",
			tell: func(s story, _ time.Time) {
				s.RecordEvaluation("update", verdict{Handler: update}).RecordCall(update, 1,
					retried(time.Minute)).RecordEvaluation("noop")
			},
			want: inspection.Handled, says: "no essential change",
		},
		"sub-handler": {
			reason: "a failed sub-handler is retrying as long as its handler waits",
			tell: func(s story, now time.Time) {
				s.RecordEvaluation("create", verdict{Handler: create}).RecordCall(subHandler, 1, retried(time.Minute))
				s.RecordCall(create, 1, waits(time.Minute)).RecordEvent("MODIFIED")
				s.RecordEvaluation("create", verdict{Handler: create, Reason: execution.Asleep,
					Until: now.Add(time.Minute)})
			},
			want: inspection.Retrying, until: time.Minute, says: "called provision/disk: attempt 1 failed; retrying",
		},
		"sub-handler, over": {
			reason: "the success of its handler ends the failure of a sub-handler",
			tell: func(s story, _ time.Time) {
				s.RecordEvaluation("create", verdict{Handler: create}).RecordCall(subHandler, 1,
					failed()).RecordCall(create, 1, succeeded())
				s.RecordEvaluation("noop")
			},
			want: inspection.Handled, says: "no essential change",
		},
		"called again": {
			reason: "a call in progress does not replace the failure before it",
			tell: func(s story, _ time.Time) {
				s.RecordEvaluation("create", verdict{Handler: create}).RecordCall(create, 1, retried(time.Minute))
				s.RecordEvaluation("create", verdict{Handler: create})
			},
			want: inspection.Retrying, says: "called provision: attempt 1 failed; retrying: no quota",
		},
		"failed, then ticks": {
			reason: "periodic calls do not replace the failure",
			tell: func(s story, _ time.Time) {
				s.RecordEvaluation("create", verdict{Handler: create}).RecordCall(create, 1, failed())
				s.RecordEvaluation("background").RecordCall(timer, 1,
					waits(time.Hour)).RecordEvent("MODIFIED").RecordCall(event, 1, succeeded())
			},
			want: inspection.Failed, says: "called provision: attempt 1 " + journal.Failed + ": no quota",
		},
		"handled, then ticks": {
			reason: "periodic calls do not replace the last change",
			tell: func(s story, _ time.Time) {
				s.RecordEvaluation("create", verdict{Handler: create}).RecordCall(create, 1, succeeded())
				s.RecordEvaluation("background").RecordCall(timer, 1,
					waits(time.Hour)).RecordEvent("MODIFIED").RecordCall(event, 1, succeeded())
			},
			want: inspection.Handled, says: "called provision: attempt 1 succeeded",
		},
		"failing tick": {
			reason: "a failing tick is shown",
			tell: func(s story, _ time.Time) {
				s.RecordEvaluation("create", verdict{Handler: create}).RecordCall(create, 1, succeeded())
				s.RecordEvaluation("background").RecordCall(timer, 4, retried(time.Minute))
			},
			want: inspection.Retrying, until: time.Minute, says: "called backup: attempt 4 failed; retrying: no quota",
		},
		"after a restart": {
			reason: "after a restart the outcome of the last change is unknown, even if a timer runs",
			tell: func(s story, _ time.Time) {
				s.RecordEvent("LISTED").RecordEvaluation("noop").RecordEvaluation("background").RecordCall(timer,
					1,
					waits(time.Hour))
			},
			want: inspection.Unknown, says: "called backup",
		},
		"after a restart, updated": {
			reason: "after a restart a new change is known",
			tell: func(s story, _ time.Time) {
				s.RecordEvent("LISTED").RecordEvaluation("noop").RecordEvaluation("update",
					verdict{Handler: update}).RecordCall(update, 1, succeeded())
				s.RecordEvaluation("background").RecordCall(timer, 1, waits(time.Hour))
			},
			want: inspection.Handled, says: "called resize",
		},
		"after a restart, failing": {
			reason: "after a restart an unfinished change continues",
			tell: func(s story, _ time.Time) {
				s.RecordEvent("LISTED").RecordEvaluation("create", verdict{Handler: create}).RecordCall(create, 5,
					retried(time.Minute))
			},
			want: inspection.Retrying, until: time.Minute, says: "attempt 5",
		},
		"blocked handler": {
			reason: "a handler that cannot be called with the object blocks it",
			tell: func(s story, _ time.Time) {
				s.RecordEvaluation("update", verdict{Handler: update, Reason: execution.Blocked})
			},
			want: inspection.Blocked, says: "skipped resize (blocked)",
		},
		"blocked object": {
			reason: "an error that waits for a change of the object blocks it",
			tell: func(s story, _ time.Time) {
				s.RecordEvent("").RecordHold(journal.HeldBlocked, errBroken,
					time.Time{})
			},
			want: inspection.Blocked, says: "not handled until it changes: no quota",
		},
		"throttled": {
			reason: "an error of the framework takes precedence over outcomes of handlers",
			tell: func(s story, now time.Time) {
				s.RecordEvaluation("create", verdict{Handler: create}).RecordCall(create, 1, failed())
				s.RecordHold(journal.HeldError, errBroken, now.Add(time.Second))
			},
			want: inspection.Throttled, until: time.Second, says: "throttled until",
		},
		"throttled no more": {
			reason: "an evaluation after the error ends the throttling",
			tell: func(s story, now time.Time) {
				s.RecordHold(journal.HeldError, errBroken, now.Add(time.Second)).RecordEvaluation("create",
					verdict{Handler: create})
			},
			want: inspection.Running, says: "selected provision",
		},
		"timer": {
			reason: "a timer between two ticks is not waiting",
			tell: func(s story, _ time.Time) {
				s.RecordEvaluation("noop").RecordEvaluation("background").RecordCall(timer, 1, waits(time.Hour))
			},
			want: inspection.Handled, says: "called backup",
		},
		"daemon that failed": {
			reason: "a failed daemon is retrying",
			tell: func(s story, _ time.Time) {
				s.RecordEvaluation("noop").RecordCall(daemon, 3, retried(time.Minute)).RecordEvaluation("noop")
			},
			want: inspection.Retrying, until: time.Minute, says: "called tail",
		},
		"event": {
			reason: "an object with handlers of raw events only is handled",
			tell: func(s story, _ time.Time) {
				s.RecordEvent("MODIFIED").RecordCall(event, 1, succeeded())
			},
			want: inspection.Handled, says: "called count",
		},
		"gone": {
			reason: "a deleted object is gone, whatever was due",
			tell: func(s story, _ time.Time) {
				s.RecordEvaluation("create", verdict{Handler: create}).RecordCall(create, 1,
					retried(time.Minute)).RecordEvent("DELETED")
			},
			want: inspection.Gone, says: "retrying",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j, now := journal.New(journal.RetentionLimits{}), time.Now().UTC()
				c.tell(journaltest.StartStory(j, widgets, "default", "one"), now)
				all := inspection.NewOverview(j).QueryView(inspection.Query{Limit: 9}).Objects
				if len(all) != 1 || all[0].State != c.want || !strings.Contains(all[0].Text, c.says) {
					t.Fatalf("%s: want %s with %q, got %+v", c.reason, c.want, c.says, all)
				}
				var until time.Duration
				if all[0].Until != nil {
					until = all[0].Until.Sub(now)
				}
				if until != c.until {
					t.Errorf("%s: %s until %s from now, want %s", c.reason, c.want, until, c.until)
				}
			})
		})
	}
}

// sortedJournal returns a journal with objects of two kinds, in all the states that sorting distinguishes.
func sortedJournal() *journal.Journal {
	j := journal.New(journal.RetentionLimits{})
	of := func(name string) story { return journaltest.StartStory(j, widgets, "default", name) }
	tick := func() { time.Sleep(time.Second) }
	of("late").RecordEvaluation("create", verdict{Handler: create}).RecordCall(create, 2, retried(time.Hour))
	tick()
	of("fine").RecordEvaluation("create", verdict{Handler: create}).RecordCall(create, 1, succeeded())
	tick()
	of("soon").RecordEvaluation("create", verdict{Handler: create}).RecordCall(create, 1, retried(time.Minute))
	tick()
	of("lost").RecordEvaluation("create", verdict{Handler: create}).RecordCall(create, 1, failed())
	tick()
	journaltest.StartStory(j, gadgets, "", "quiet").RecordEvaluation("noop")
	tick()
	of("gone").RecordEvent("DELETED")
	return j
}

func objectNames(v inspection.View) (all []string) {
	for _, o := range v.Objects {
		all = append(all, o.Name)
	}
	return all
}

// TestLook shows that problems come first, the most severe and oldest at the top, and then the newest objects. Counts
// include all objects, even those that the query excludes.
func TestLook(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason   string
		query    inspection.Query
		want     []string
		matching int
	}{
		"all": {"without conditions all objects are returned, problems first", inspection.Query{Limit: 9},
			[]string{"lost", "late", "soon", "gone", "quiet", "fine"}, 6},
		"few":  {"a limit returns the first objects", inspection.Query{Limit: 2}, []string{"lost", "late"}, 6},
		"none": {"a limit of zero returns the counts alone", inspection.Query{}, nil, 6},
		"kind": {"a kind selects its objects", inspection.Query{Kind: "Gadget", Limit: 9}, []string{"quiet"}, 1},
		"state": {"a state selects its objects",
			inspection.Query{State: inspection.Retrying, Limit: 9}, []string{"late", "soon"}, 2},
		"name": {"a text selects by name, in any letter case",
			inspection.Query{Text: "DEFAULT/L", Limit: 9}, []string{"lost", "late"}, 2},
		"says": {"a text selects by the last decision",
			inspection.Query{Text: journal.Failed, Limit: 9}, []string{"lost"}, 1},
		"both": {"several conditions must all match",
			inspection.Query{Text: "default", State: inspection.Gone, Limit: 9}, []string{"gone"}, 1},
		"nothing": {"an unknown kind selects nothing", inspection.Query{Kind: "Nothing", Limit: 9}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				v := inspection.NewOverview(sortedJournal()).QueryView(c.query)
				if diff := cmp.Diff(c.want, objectNames(v)); diff != "" || v.MatchCount != c.matching {
					t.Errorf("%s: %d match (-want, +got):\n%s", c.reason, v.MatchCount, diff)
				}
				states := map[inspection.ObjectCondition]int{
					inspection.Failed: 1, inspection.Retrying: 2, inspection.Handled: 1, inspection.Unchanged: 1,
					inspection.Gone: 1,
				}
				if diff := cmp.Diff(states, v.States); diff != "" {
					t.Errorf("the counts of all objects differ (-want, +got):\n%s", diff)
				}
				kinds := map[string]int{"Widget.example.org": 5, "Gadget": 1}
				if diff := cmp.Diff(kinds, v.Kinds); diff != "" || v.Total != 6 || v.RetryCount != 2 {
					t.Errorf("%d objects, %d retries, kinds (-want, +got):\n%s", v.Total, v.RetryCount, diff)
				}
			})
		})
	}
}
