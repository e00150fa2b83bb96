package journal_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

func diffOf(keys ...string) (all diff.Diff) {
	for _, key := range keys {
		all = append(all, diff.Item{Op: diff.Change, Path: diff.Path{"spec", key}, Old: "hunter1", New: "hunter2"})
	}
	return all
}

// TestLooks shows that an evaluation of a change is noted with a limited number of paths, and without values.
func TestLooks(t *testing.T) {
	eight := strings.Split("abcdefgh", "")
	paths := []string{
		"spec.a", "spec.b", "spec.c", "spec.d", "spec.e", "spec.f", "spec.g", "spec.h",
	}
	long := strings.Repeat("k", 61)
	cases := map[string]struct {
		reason string
		draft  func(o journal.ObjectJournal) *journal.Draft
		want   journal.Evaluation
	}{
		"creation": {"a creation is noted without paths, as everything is new",
			func(o journal.ObjectJournal) *journal.Draft {
				return o.StartEvaluation(&cause.Cause{Reason: cause.Create, Diff: diffOf("a")})
			}, journal.Evaluation{Reason: "create"}},
		"resume": {"a resume is noted as initial",
			func(o journal.ObjectJournal) *journal.Draft {
				return o.StartEvaluation(&cause.Cause{Reason: cause.Resume, Initial: true})
			},
			journal.Evaluation{Reason: "resume", Initial: true}},
		"update": {"an update is noted with up to eight paths",
			func(o journal.ObjectJournal) *journal.Draft {
				return o.StartEvaluation(&cause.Cause{Reason: cause.Update, Diff: diffOf(eight...)})
			}, journal.Evaluation{Reason: "update", ChangedPaths: paths}},
		"large update": {"paths beyond the eighth are counted",
			func(o journal.ObjectJournal) *journal.Draft {
				return o.StartEvaluation(&cause.Cause{Reason: cause.Update, Diff: diffOf(append(eight, "i", "j")...)})
			}, journal.Evaluation{Reason: "update", ChangedPaths: paths, OmittedPathCount: 2}},
		"long path": {"a long path is cut",
			func(o journal.ObjectJournal) *journal.Draft {
				return o.StartEvaluation(&cause.Cause{Reason: cause.Update, Diff: diffOf(long)})
			}, journal.Evaluation{Reason: "update", ChangedPaths: []string{"spec." + long[:55] + "…"}}},
		"dropped": {"dropped progress is noted",
			func(o journal.ObjectJournal) *journal.Draft {
				d := o.StartEvaluation(&cause.Cause{Reason: cause.Noop})
				d.NoteDropped("a former update")
				return d
			}, journal.Evaluation{Reason: "noop", DroppedReason: "a former update"}},
		"background": {"an evaluation of background handlers is noted without cause and paths",
			func(o journal.ObjectJournal) *journal.Draft {
				return o.StartBackgroundEvaluation(&cause.Cause{Reason: cause.Update, Diff: diffOf("a"), Initial: true})
			}, journal.Evaluation{Reason: "background"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			j := newServingJournal(journal.RetentionLimits{})
			c.draft(widgetsOf(j).ForObject(w1, "u1")).AddToJournal()
			if d := cmp.Diff(&c.want, lastEntry(t, j).Evaluation); d != "" {
				t.Errorf("%s; -want, +got:\n%s", c.reason, d)
			}
		})
	}
}

// TestLooksAtEvents shows that an evaluation of a raw event is noted only if a handler rejected it. Calls are noted as
// attempts.
func TestLooksAtEvents(t *testing.T) {
	yes, no := &handlers.Handler{ID: "yes"}, &handlers.Handler{ID: "no"}
	cases := map[string]struct {
		reason       string
		handlers     []*handlers.Handler
		wantRecorded bool
	}{
		"no handler": {"an event without handlers is not noted", nil, false},
		"wanted":     {"an event that calls its handler is not noted, as the call is", []*handlers.Handler{yes}, false},
		"refused":    {"an event that is rejected is noted", []*handlers.Handler{no}, true},
		"both":       {"an event with a call and a rejection is noted", []*handlers.Handler{yes, no}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			j := newServingJournal(journal.RetentionLimits{})
			d := widgetsOf(j).ForObject(w1, "u1").StartEventEvaluation(&cause.Cause{EventType: "MODIFIED"})
			for _, h := range c.handlers {
				stop := execution.Stop{}
				if h == no {
					stop.Reason = execution.FilteredOut
				}
				d.VerdictFunc()(h, stop)
			}
			d.AddToJournal()
			all := explainObject(t, j, w1).History
			if (len(all) == 1) != c.wantRecorded {
				t.Fatalf("%s: noted: want %t, got %d entries", c.reason, c.wantRecorded, len(all))
			}
			if c.wantRecorded && (all[0].Evaluation.Reason != "event" || all[0].Evaluation.Type != "MODIFIED") {
				t.Errorf("%s: want the type of the event, got %+v", c.reason, all[0].Evaluation)
			}
		})
	}
}

// TestVerdictsOfALook shows that an evaluation is noted once, with the last verdict on each handler.
func TestVerdictsOfALook(t *testing.T) {
	a, b := &handlers.Handler{ID: "a", Reason: cause.Create}, &handlers.Handler{ID: "b", Reason: cause.Create}
	onDeletion := &handlers.Handler{ID: "a", Reason: cause.Delete}
	finished, asleep := execution.Stop{Reason: execution.Finished}, execution.Stop{Reason: execution.Asleep}
	cases := map[string]struct {
		reason string
		ask    func(d *journal.Draft)
		want   []string
	}{
		"order": {"verdicts keep the order of evaluation",
			func(d *journal.Draft) { d.AddVerdict(b, finished); d.AddVerdict(a, asleep) },
			[]string{"b create finished", "a create asleep"}},
		"selected, and not due": {"a second verdict on a handler replaces the first one at its place",
			func(d *journal.Draft) {
				d.AddVerdict(a, execution.Stop{})
				d.AddVerdict(b, finished)
				d.AddVerdict(a, asleep)
			},
			[]string{"a create asleep", "b create finished"}},
		"two of one id": {"handlers with one id and different causes have separate verdicts",
			func(d *journal.Draft) { d.AddVerdict(a, finished); d.AddVerdict(onDeletion, asleep) },
			[]string{"a create finished", "a delete asleep"}},
		"forgotten": {"a draft that is reset keeps the later verdicts only",
			func(d *journal.Draft) { d.AddVerdict(a, finished); d.ClearVerdicts(); d.AddVerdict(b, asleep) },
			[]string{"b create asleep"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			j := newServingJournal(journal.RetentionLimits{})
			d := widgetsOf(j).ForObject(w1, "u1").StartEvaluation(&cause.Cause{Reason: cause.Create})
			c.ask(d)
			d.AddToJournal()
			d.AddToJournal()
			e := lastEntry(t, j)
			got := make([]string, 0, len(e.Evaluation.Verdicts))
			for _, v := range e.Evaluation.Verdicts {
				got = append(got, v.Handler+" "+v.Purpose+" "+v.Reason)
			}
			if d := cmp.Diff(c.want, got); d != "" || e.Times != 0 {
				t.Errorf("%s: noted %d times more than once; -want, +got:\n%s", c.reason, e.Times, d)
			}
		})
	}
}
