package inspection_test

import (
	"fmt"
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

// manyObjects has objects with problems of all severities, and some without, each with a timer that ticks every second.
type manyObjects struct {
	journal *journal.Journal
	stories map[string]story
}

func newManyObjects() *manyObjects {
	c := &manyObjects{journal.New(journal.RetentionLimits{}), map[string]story{}}
	for name := range strings.FieldsSeq("retrying-1 failed-1 handled-1 retrying-2 held failed-2 handled-2") {
		s := journaltest.StartStory(c.journal, widgets, "default", name).RecordEvent("ADDED").RecordEvaluation("create",
			verdict{Handler: create})
		switch {
		case strings.HasPrefix(name, "retrying"):
			s.RecordCall(create, 1, retried(10*time.Second))
		case strings.HasPrefix(name, "failed"):
			s.RecordCall(create, 1, failed())
		case strings.HasPrefix(name, "handled"):
			s.RecordCall(create, 1, succeeded())
		default:
			s.RecordHold(journal.HeldError, errBroken, time.Now().Add(time.Hour))
		}
		c.stories[name] = s
		time.Sleep(time.Second)
	}
	return c
}

// simulateSecond simulates one second of the operator: ticks and raw events of all objects, and a retry every ten
// seconds.
func (c *manyObjects) simulateSecond(second int) {
	for name, s := range c.stories {
		if name != "held" {
			s.RecordEvent("MODIFIED").RecordCall(event, 1,
				succeeded()).RecordEvaluation("background").RecordCall(timer, 1, waits(time.Second))
		}
		if strings.HasPrefix(name, "retrying") && second%10 == 0 {
			s.RecordEvaluation("create", verdict{Handler: create})
			if second%20 == 0 {
				continue // the call takes a while
			}
			s.RecordCall(create, 2+second/10, retried(10*time.Second))
		}
	}
	time.Sleep(time.Second)
}

// TestTheOrderIsStable shows that rows are sorted by severity, and then by the start of the state. Timers and retries
// do not change this.
func TestTheOrderIsStable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newManyObjects()
		o := inspection.NewOverview(c.journal)
		rows := func() (all []string) {
			for _, one := range o.QueryView(inspection.Query{Limit: 9}).Objects {
				all = append(all, fmt.Sprintf("%s since %s", one.Name, one.Since.Format("05")))
			}
			return all
		}
		want := []string{
			"held since 04", "failed-1 since 01", "failed-2 since 05", "retrying-1 since 00", "retrying-2 since 03",
			"handled-2 since 06", "handled-1 since 02",
		}
		for second := range 120 {
			c.simulateSecond(second)
			if d := cmp.Diff(want, rows()); d != "" {
				t.Fatalf("after %d seconds, -want, +got:\n%s", second+1, d)
			}
		}
		superseded := verdict{Handler: create, Reason: execution.OtherReason}
		c.stories["failed-1"].RecordEvaluation("update", superseded,
			verdict{Handler: update}).RecordCall(update, 1, succeeded())
		c.stories["handled-1"].RecordEvaluation("update", superseded,
			verdict{Handler: update}).RecordCall(update, 1, failed())
		time.Sleep(time.Second)
		want = []string{"held", "failed-2", "handled-1", "retrying-1", "retrying-2", "failed-1", "handled-2"}
		if d := cmp.Diff(want, objectNames(o.QueryView(inspection.Query{Limit: 9}))); d != "" {
			t.Errorf("only changed objects may move: -want, +got:\n%s", d)
		}
	})
}

// TestTheBeginningIsKept shows that the start of a problem is kept after the journal has dropped its first entries.
func TestTheBeginningIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now().UTC()
		j := journal.New(journal.RetentionLimits{Entries: 3})
		s := journaltest.StartStory(j, widgets, "default", "one").RecordEvent("ADDED")
		o := inspection.NewOverview(j)
		for n := range 20 {
			outcome := retried(time.Second)
			outcome.Err = fmt.Errorf("error %d", n)
			s.RecordCall(create, n+1, outcome)
			time.Sleep(time.Second)
			one := o.QueryView(inspection.Query{Limit: 9}).Objects[0]
			if !one.Since.Equal(began) || !strings.Contains(one.Text, fmt.Sprintf("error %d", n)) {
				t.Fatalf("call %d: since %s, says %q", n+1, one.Since, one.Text)
			}
		}
	})
}

// TestRestartWithTimersAlone shows that after a restart, objects of a kind without handlers of changes are not unknown.
func TestRestartWithTimersAlone(t *testing.T) {
	t.Parallel()
	j := journal.New(journal.RetentionLimits{})
	operator := &journaltest.FakeOperator{}
	operator.SetState(journal.OperatorState{Kinds: []journal.ServedKind{
		journaltest.ServedKind(j, widgets, timer),
		journaltest.ServedKind(j, gadgets, timer, create),
	}})
	j.SetLive(operator)
	journaltest.StartStory(j, widgets, "default", "a").RecordEvent("LISTED").RecordCall(timer, 1, waits(time.Hour))
	journaltest.StartStory(j, gadgets, "default", "b").RecordEvent("LISTED").RecordCall(timer, 1, waits(time.Hour))
	got := map[string]inspection.ObjectCondition{}
	for _, one := range inspection.NewOverview(j).QueryView(inspection.Query{Limit: 9}).Objects {
		got[one.Name] = one.State
	}
	want := map[string]inspection.ObjectCondition{"a": inspection.Handled, "b": inspection.Unknown}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
}

// TestRefresh shows that new entries appear after half a second, that unchanged objects stay, and that objects dropped
// by the journal disappear.
func TestRefresh(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := journal.New(journal.RetentionLimits{Objects: 2})
		of := func(name string) story { return journaltest.StartStory(j, widgets, "default", name) }
		of("a").RecordEvent("ADDED")
		of("b").RecordEvent("ADDED")
		o := inspection.NewOverview(j)
		look := func() (all []string) {
			for _, one := range o.QueryView(inspection.Query{Limit: 9}).Objects {
				all = append(all, fmt.Sprintf("%s %s", one.Name, one.State))
			}
			return all
		}
		want := func(when string, want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, look()); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", when, diff)
			}
		}
		want("at first", "a seen", "b seen")
		of("b").RecordEvaluation("noop")
		want("within half a second", "a seen", "b seen")
		time.Sleep(time.Second)
		want("after half a second", "a seen", "b unchanged")
		of("c").RecordEvent("ADDED")
		time.Sleep(time.Second)
		want("with a third object beyond the limit", "c seen", "b unchanged")
	})
}
