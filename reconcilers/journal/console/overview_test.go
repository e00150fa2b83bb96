package console_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal/console"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal/journaltest"
)

type (
	story   = journaltest.Story
	verdict = journaltest.Verdict
)

var (
	widgets = journaltest.Resource("example.org", "Widget", "widgets")
	gadgets = journaltest.Resource("", "Gadget", "gadgets")

	create = journaltest.Handler("provision", "create")
	other  = journaltest.Handler("announce", "create")
	update = journaltest.Handler("resize", "update")
	timer  = journaltest.Handler("backup", "timer")
	daemon = journaltest.Handler("tail", "daemon")
	event  = journaltest.Handler("count", "event")
	sub    = journaltest.Handler("provision/disk", "sub-handler")

	errBroken = errors.New("no quota")
)

func succeeded() execution.Outcome { return execution.Outcome{Final: true} }
func failed() execution.Outcome    { return execution.Outcome{Final: true, Err: errBroken} }

func retried(after time.Duration) execution.Outcome {
	return execution.Outcome{Err: errBroken, Delay: &after}
}

// waits is the outcome of a function that goes on later, without an error.
func waits(after time.Duration) execution.Outcome { return execution.Outcome{Delay: &after} }

// The entries of an object come to one state; the time until something is done by itself comes with it.
func TestState(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason string
		tell   func(story, time.Time)
		want   console.State
		until  time.Duration
		says   string
	}{
		"seen": {
			reason: "the watch has brought it, and nobody has looked yet",
			tell:   func(s story, _ time.Time) { s.Event("ADDED") },
			want:   console.Seen, says: "event ADDED",
		},
		"running": {
			reason: "a handler is selected, and its call has not ended",
			tell:   func(s story, _ time.Time) { s.Event("ADDED").Look("create", verdict{Handler: create}) },
			want:   console.Running, says: "evaluated a creation; selected provision",
		},
		"handled": {
			reason: "all has succeeded; that our own write is seen, and changes nothing, is not what one wants to read",
			tell: func(s story, _ time.Time) {
				s.Look("create", verdict{Handler: create}).Call(create, 1, succeeded()).Event("MODIFIED").Look("noop")
			},
			want: console.Handled, says: "called provision: attempt 1 succeeded",
		},
		"unchanged": {
			reason: "there was never anything to do",
			tell:   func(s story, _ time.Time) { s.Event("ADDED").Look("noop") },
			want:   console.Unchanged, says: "no essential change",
		},
		"not wanted": {
			reason: "its handlers are for something else",
			tell: func(s story, _ time.Time) {
				s.Look("update", verdict{Handler: create, Why: execution.OtherReason})
			},
			want: console.Unchanged, says: "skipped provision (other reason)",
		},
		"retrying": {
			reason: "it has failed, and its time is told",
			tell: func(s story, _ time.Time) {
				s.Look("create", verdict{Handler: create}).Call(create, 1, retried(time.Minute))
			},
			want: console.Retrying, until: time.Minute, says: "attempt 1 failed; retrying: no quota",
		},
		"retrying, looked at": {
			reason: "an event in between finds it asleep: it has failed nevertheless",
			tell: func(s story, now time.Time) {
				s.Look("create", verdict{Handler: create}).Call(create, 1, retried(time.Minute)).Event("MODIFIED")
				s.Look("create", verdict{Handler: create, Why: execution.Asleep, Until: now.Add(time.Minute)})
			},
			want: console.Retrying, until: time.Minute, says: "called provision: attempt 1 failed; retrying: no quota",
		},
		"retried with success": {
			reason: "the failure is over",
			tell: func(s story, _ time.Time) {
				s.Look("create", verdict{Handler: create}).Call(create, 1, retried(time.Minute))
				s.Look("create", verdict{Handler: create}).Call(create, 2, succeeded())
			},
			want: console.Handled, says: "attempt 2 succeeded",
		},
		"waiting": {
			reason: "it goes on later, without an error",
			tell: func(s story, _ time.Time) {
				s.Look("create", verdict{Handler: create}).Call(create, 1, waits(time.Hour))
			},
			want: console.Waiting, until: time.Hour, says: "attempt 1 waiting",
		},
		"waiting for others": {
			reason: "one comes after another that is done",
			tell: func(s story, _ time.Time) {
				s.Look("create", verdict{Handler: create}, verdict{Handler: other, Why: execution.Awaiting})
				s.Call(create, 1, succeeded())
			},
			want: console.Waiting, says: "skipped announce (awaiting others)",
		},
		"worst first": {
			reason: "one handler failed permanently, another one is tried again",
			tell: func(s story, _ time.Time) {
				s.Look("create", verdict{Handler: create}, verdict{Handler: other})
				s.Call(create, 1, failed()).Call(other, 1, retried(time.Minute))
			},
			want: console.Failed, says: "called provision: attempt 1 " + journal.Failed + ": no quota",
		},
		"failed, then quiet": {
			reason: "that nothing changes afterwards repairs nothing",
			tell: func(s story, _ time.Time) {
				s.Look("create", verdict{Handler: create}).Call(create, 1, failed()).Event("MODIFIED").Look("noop")
			},
			want: console.Failed, says: "attempt 1 " + journal.Failed + ": no quota",
		},
		"failed, then updated": {
			reason: "the change was superseded by one that was handled",
			tell: func(s story, _ time.Time) {
				s.Look("create", verdict{Handler: create}).Call(create, 1, failed())
				s.Look("update", verdict{Handler: create, Why: execution.OtherReason}, verdict{Handler: update})
				s.Call(update, 1, succeeded())
			},
			want: console.Handled, says: "called resize",
		},
		"retry given up": {
			reason: "the change that it was for was undone, so nobody is asked any more",
			tell: func(s story, _ time.Time) {
				s.Look("update", verdict{Handler: update}).Call(update, 1, retried(time.Minute)).Look("noop")
			},
			want: console.Handled, says: "no essential change",
		},
		"sub-handler": {
			reason: "nobody asks a sub-handler: it waits as long as its handler does",
			tell: func(s story, now time.Time) {
				s.Look("create", verdict{Handler: create}).Call(sub, 1, retried(time.Minute))
				s.Call(create, 1, waits(time.Minute)).Event("MODIFIED")
				s.Look("create", verdict{Handler: create, Why: execution.Asleep, Until: now.Add(time.Minute)})
			},
			want: console.Retrying, until: time.Minute, says: "called provision/disk: attempt 1 failed; retrying",
		},
		"sub-handler, over": {
			reason: "its handler is done",
			tell: func(s story, _ time.Time) {
				s.Look("create", verdict{Handler: create}).Call(sub, 1, failed()).Call(create, 1, succeeded())
				s.Look("noop")
			},
			want: console.Handled, says: "no essential change",
		},
		"called again": {
			reason: "that it is called again does not mean that the failure is over",
			tell: func(s story, _ time.Time) {
				s.Look("create", verdict{Handler: create}).Call(create, 1, retried(time.Minute))
				s.Look("create", verdict{Handler: create})
			},
			want: console.Retrying, says: "called provision: attempt 1 failed; retrying: no quota",
		},
		"failed, then ticks": {
			reason: "periodic calls do not replace the failure",
			tell: func(s story, _ time.Time) {
				s.Look("create", verdict{Handler: create}).Call(create, 1, failed())
				s.Look("background").Call(timer, 1, waits(time.Hour)).Event("MODIFIED").Call(event, 1, succeeded())
			},
			want: console.Failed, says: "called provision: attempt 1 " + journal.Failed + ": no quota",
		},
		"handled, then ticks": {
			reason: "the last change is of more interest than the last tick",
			tell: func(s story, _ time.Time) {
				s.Look("create", verdict{Handler: create}).Call(create, 1, succeeded())
				s.Look("background").Call(timer, 1, waits(time.Hour)).Event("MODIFIED").Call(event, 1, succeeded())
			},
			want: console.Handled, says: "called provision: attempt 1 succeeded",
		},
		"failing tick": {
			reason: "a tick is shown if it is the problem",
			tell: func(s story, _ time.Time) {
				s.Look("create", verdict{Handler: create}).Call(create, 1, succeeded())
				s.Look("background").Call(timer, 4, retried(time.Minute))
			},
			want: console.Retrying, until: time.Minute, says: "called backup: attempt 4 failed; retrying: no quota",
		},
		"after a restart": {
			reason: "the outcome of the last change is not known any more, even if a timer runs",
			tell: func(s story, _ time.Time) {
				s.Event("LISTED").Look("noop").Look("background").Call(timer, 1, waits(time.Hour))
			},
			want: console.Unknown, says: "called backup",
		},
		"after a restart, updated": {
			reason: "the change in this process is known",
			tell: func(s story, _ time.Time) {
				s.Event("LISTED").Look("noop").Look("update", verdict{Handler: update}).Call(update, 1, succeeded())
				s.Look("background").Call(timer, 1, waits(time.Hour))
			},
			want: console.Handled, says: "called resize",
		},
		"after a restart, failing": {
			reason: "an unfinished change continues",
			tell: func(s story, _ time.Time) {
				s.Event("LISTED").Look("create", verdict{Handler: create}).Call(create, 5, retried(time.Minute))
			},
			want: console.Retrying, until: time.Minute, says: "attempt 5",
		},
		"blocked handler": {
			reason: "the handler cannot be called with the object",
			tell: func(s story, _ time.Time) {
				s.Look("update", verdict{Handler: update, Why: execution.Blocked})
			},
			want: console.Blocked, says: "skipped resize (blocked)",
		},
		"blocked object": {
			reason: "the framework itself waits for a change",
			tell:   func(s story, _ time.Time) { s.Event("").Hold(journal.HeldBlocked, errBroken, time.Time{}) },
			want:   console.Blocked, says: "not handled until it changes: no quota",
		},
		"throttled": {
			reason: "an error of the framework counts more than what handlers did",
			tell: func(s story, now time.Time) {
				s.Look("create", verdict{Handler: create}).Call(create, 1, failed())
				s.Hold(journal.HeldError, errBroken, now.Add(time.Second))
			},
			want: console.Throttled, until: time.Second, says: "throttled until",
		},
		"throttled no more": {
			reason: "it was handled since",
			tell: func(s story, now time.Time) {
				s.Hold(journal.HeldError, errBroken, now.Add(time.Second)).Look("create", verdict{Handler: create})
			},
			want: console.Running, says: "selected provision",
		},
		"timer": {
			reason: "one that is called again and again is no handler that waits",
			tell: func(s story, _ time.Time) {
				s.Look("noop").Look("background").Call(timer, 1, waits(time.Hour))
			},
			want: console.Handled, says: "called backup",
		},
		"daemon that failed": {
			reason: "it is started again, so somebody should look",
			tell:   func(s story, _ time.Time) { s.Look("noop").Call(daemon, 3, retried(time.Minute)).Look("noop") },
			want:   console.Retrying, until: time.Minute, says: "called tail",
		},
		"event": {
			reason: "a handler of raw events has dealt with it",
			tell:   func(s story, _ time.Time) { s.Event("MODIFIED").Call(event, 1, succeeded()) },
			want:   console.Handled, says: "called count",
		},
		"gone": {
			reason: "of what is deleted, nothing waits",
			tell: func(s story, _ time.Time) {
				s.Look("create", verdict{Handler: create}).Call(create, 1, retried(time.Minute)).Event("DELETED")
			},
			want: console.Gone, says: "retrying",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j, now := journal.New(journal.Limits{}), time.Now().UTC()
				c.tell(journaltest.Of(j, widgets, "default", "one"), now)
				all := console.NewOverview(j).Look(console.Query{Most: 9}).Objects
				if len(all) != 1 || all[0].State != c.want || !strings.Contains(all[0].Says, c.says) {
					t.Fatalf("%s: want %s with %q, got %+v", c.reason, c.want, c.says, all)
				}
				var until time.Duration
				if all[0].Until != nil {
					until = all[0].Until.Sub(now)
				}
				if until != c.until {
					t.Errorf("%s: it is %s until %s from now, want %s", c.reason, c.want, until, c.until)
				}
			})
		})
	}
}

// sortedJournal has objects of two kinds, in all the states that sorting distinguishes.
func sortedJournal() *journal.Journal {
	j := journal.New(journal.Limits{})
	of := func(name string) story { return journaltest.Of(j, widgets, "default", name) }
	tick := func() { time.Sleep(time.Second) }
	of("late").Look("create", verdict{Handler: create}).Call(create, 2, retried(time.Hour))
	tick()
	of("fine").Look("create", verdict{Handler: create}).Call(create, 1, succeeded())
	tick()
	of("soon").Look("create", verdict{Handler: create}).Call(create, 1, retried(time.Minute))
	tick()
	of("lost").Look("create", verdict{Handler: create}).Call(create, 1, failed())
	tick()
	journaltest.Of(j, gadgets, "", "quiet").Look("noop")
	tick()
	of("gone").Event("DELETED")
	return j
}

func names(v console.View) (all []string) {
	for _, o := range v.Objects {
		all = append(all, o.Name)
	}
	return all
}

// Problems come first, the most severe and oldest at the top, then the newest objects. Counts include all objects, also
// those that the query excludes.
func TestLook(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason   string
		query    console.Query
		want     []string
		matching int
	}{
		"all": {"problems first", console.Query{Most: 9},
			[]string{"lost", "late", "soon", "gone", "quiet", "fine"}, 6},
		"few":   {"the first ones", console.Query{Most: 2}, []string{"lost", "late"}, 6},
		"none":  {"without objects, the view has the counts", console.Query{}, nil, 6},
		"kind":  {"of one kind", console.Query{Kind: "Gadget", Most: 9}, []string{"quiet"}, 1},
		"state": {"of one state", console.Query{State: console.Retrying, Most: 9}, []string{"late", "soon"}, 2},
		"name":  {"in any case", console.Query{Text: "DEFAULT/L", Most: 9}, []string{"lost", "late"}, 2},
		"says":  {"by the last decision", console.Query{Text: journal.Failed, Most: 9}, []string{"lost"}, 1},
		"both": {"all of it counts", console.Query{Text: "default", State: console.Gone, Most: 9},
			[]string{"gone"}, 1},
		"nothing": {"there is none", console.Query{Kind: "Nothing", Most: 9}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				v := console.NewOverview(sortedJournal()).Look(c.query)
				if diff := cmp.Diff(c.want, names(v)); diff != "" || v.Matching != c.matching {
					t.Errorf("%s: %d match (-want, +got):\n%s", c.reason, v.Matching, diff)
				}
				states := map[console.State]int{
					console.Failed: 1, console.Retrying: 2, console.Handled: 1, console.Unchanged: 1,
					console.Gone: 1,
				}
				if diff := cmp.Diff(states, v.States); diff != "" {
					t.Errorf("the counts of all are others (-want, +got):\n%s", diff)
				}
				kinds := map[string]int{"Widget.example.org": 5, "Gadget": 1}
				if diff := cmp.Diff(kinds, v.Kinds); diff != "" || v.Known != 6 || v.Retrying != 2 {
					t.Errorf("%d objects, %d retries, kinds (-want, +got):\n%s", v.Known, v.Retrying, diff)
				}
			})
		})
	}
}

// Retries are those of all objects, the first that is due being first.
func TestRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now().UTC()
		soon, late := began.Add(62*time.Second), began.Add(time.Hour)
		want := []console.Retry{
			{Kind: "Widget.example.org", Namespace: "default", Name: "soon", Handler: "provision", On: "create",
				Attempt: 1, Error: "no quota", Until: &soon},
			{Kind: "Widget.example.org", Namespace: "default", Name: "late", Handler: "provision", On: "create",
				Attempt: 2, Error: "no quota", Until: &late},
		}
		got := console.NewOverview(sortedJournal()).Look(console.Query{Kind: "Gadget", Most: 9}).Retries
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the retries differ (-want, +got):\n%s", diff)
		}
	})
}
