package journal_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

func differing(keys ...string) (all diff.Diff) {
	for _, key := range keys {
		all = append(all, diff.Item{Op: diff.Change, Path: diff.Path{"spec", key}, Old: "hunter1", New: "hunter2"})
	}
	return all
}

// A look says what has happened: of changes, the paths, as far as there is room, and no values.
func TestLooks(t *testing.T) {
	eight := strings.Split("abcdefgh", "")
	paths := []string{
		"spec.a", "spec.b", "spec.c", "spec.d", "spec.e", "spec.f", "spec.g", "spec.h",
	}
	long := strings.Repeat("k", 61)
	cases := map[string]struct {
		reason string
		draft  func(o journal.Object) *journal.Draft
		want   journal.Look
	}{
		"creation": {"all of it is new, so no path says more",
			func(o journal.Object) *journal.Draft {
				return o.Look(&cause.Cause{Reason: cause.Create, Diff: differing("a")})
			}, journal.Look{Reason: "create"}},
		"resume": {"it was there before",
			func(o journal.Object) *journal.Draft {
				return o.Look(&cause.Cause{Reason: cause.Resume, Initial: true})
			},
			journal.Look{Reason: "resume", Initial: true}},
		"update": {"there is room for these paths",
			func(o journal.Object) *journal.Draft {
				return o.Look(&cause.Cause{Reason: cause.Update, Diff: differing(eight...)})
			}, journal.Look{Reason: "update", Changed: paths}},
		"large update": {"the rest is counted",
			func(o journal.Object) *journal.Draft {
				return o.Look(&cause.Cause{Reason: cause.Update, Diff: differing(append(eight, "i", "j")...)})
			}, journal.Look{Reason: "update", Changed: paths, More: 2}},
		"long path": {"keys may be of any length",
			func(o journal.Object) *journal.Draft {
				return o.Look(&cause.Cause{Reason: cause.Update, Diff: differing(long)})
			}, journal.Look{Reason: "update", Changed: []string{"spec." + long[:55] + "…"}}},
		"dropped": {"it was decided by the way",
			func(o journal.Object) *journal.Draft {
				d := o.Look(&cause.Cause{Reason: cause.Noop})
				d.Dropped("a former update")
				return d
			}, journal.Look{Reason: "noop", Dropped: "a former update"}},
		"background": {"what has happened makes no difference",
			func(o journal.Object) *journal.Draft {
				return o.LookForBackground(&cause.Cause{Reason: cause.Update, Diff: differing("a"), Initial: true})
			}, journal.Look{Reason: "background"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			j := kept(journal.Limits{})
			c.draft(widgetsOf(j).Object(w1, "u1")).Note()
			if d := cmp.Diff(&c.want, lastOf(t, j).Look); d != "" {
				t.Errorf("%s; -want, +got:\n%s", c.reason, d)
			}
		})
	}
}

// A look at a raw event is worth a note only if somebody did not want it: each call is an attempt.
func TestLooksAtEvents(t *testing.T) {
	yes, no := &handlers.Handler{ID: "yes"}, &handlers.Handler{ID: "no"}
	cases := map[string]struct {
		reason string
		asked  []*handlers.Handler
		noted  bool
	}{
		"nobody":  {"there is nothing to be told", nil, false},
		"wanted":  {"what is called is told", []*handlers.Handler{yes}, false},
		"refused": {"it is told why", []*handlers.Handler{no}, true},
		"both":    {"it is told why one is not called", []*handlers.Handler{yes, no}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			j := kept(journal.Limits{})
			d := widgetsOf(j).Object(w1, "u1").LookAtEvent(&cause.Cause{Type: "MODIFIED"})
			for _, h := range c.asked {
				stop := execution.Stop{}
				if h == no {
					stop.Why = execution.FilteredOut
				}
				d.Teller()(h, stop)
			}
			d.Note()
			all := explained(t, j, w1).History
			if (len(all) == 1) != c.noted {
				t.Fatalf("%s: noted: want %t, got %d entries", c.reason, c.noted, len(all))
			}
			if c.noted && (all[0].Look.Reason != "event" || all[0].Look.Type != "MODIFIED") {
				t.Errorf("%s: want the type of the event, got %+v", c.reason, all[0].Look)
			}
		})
	}
}

// A look is noted once, with the last verdict on each handler.
func TestVerdictsOfALook(t *testing.T) {
	a, b := &handlers.Handler{ID: "a", Reason: cause.Create}, &handlers.Handler{ID: "b", Reason: cause.Create}
	onDeletion := &handlers.Handler{ID: "a", Reason: cause.Delete}
	finished, asleep := execution.Stop{Why: execution.Finished}, execution.Stop{Why: execution.Asleep}
	cases := map[string]struct {
		reason string
		ask    func(d *journal.Draft)
		want   []string
	}{
		"order": {"it is that of the registration",
			func(d *journal.Draft) { d.Verdict(b, finished); d.Verdict(a, asleep) },
			[]string{"b create finished", "a create asleep"}},
		"selected, and not due": {"the last one counts, at its place",
			func(d *journal.Draft) { d.Verdict(a, execution.Stop{}); d.Verdict(b, finished); d.Verdict(a, asleep) },
			[]string{"a create asleep", "b create finished"}},
		"two of one id": {"each of them is for something else",
			func(d *journal.Draft) { d.Verdict(a, finished); d.Verdict(onDeletion, asleep) },
			[]string{"a create finished", "a delete asleep"}},
		"forgotten": {"they are asked anew",
			func(d *journal.Draft) { d.Verdict(a, finished); d.Forget(); d.Verdict(b, asleep) },
			[]string{"b create asleep"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			j := kept(journal.Limits{})
			d := widgetsOf(j).Object(w1, "u1").Look(&cause.Cause{Reason: cause.Create})
			c.ask(d)
			d.Note()
			d.Note()
			e := lastOf(t, j)
			got := make([]string, 0, len(e.Look.Verdicts))
			for _, v := range e.Look.Verdicts {
				got = append(got, v.Handler+" "+v.On+" "+v.Why)
			}
			if d := cmp.Diff(c.want, got); d != "" || e.Times != 0 {
				t.Errorf("%s: noted %d times more than once; -want, +got:\n%s", c.reason, e.Times, d)
			}
		})
	}
}
