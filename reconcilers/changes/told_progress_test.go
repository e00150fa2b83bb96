package changes_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
)

// remembers puts a record of the creation onto the object: when it began, and its next attempt, from now on.
func (w *world) remembers(id string, success bool, began, next time.Duration) {
	at := func(d time.Duration) string {
		return time.Now().Add(d).UTC().Format("2006-01-02T15:04:05.000000+00:00")
	}
	w.set(fmt.Sprintf(
		`{"started":%q,"delayed":%q,"purpose":"create","retries":1,"success":%t,"failure":false}`,
		at(began), at(next), success,
	), "metadata", "annotations", prefix+"/"+id)
}

// wantNext compares what a pass tells of the progress of a change.
func (p *process) wantNext(when string, want changes.Next) {
	p.t.Helper()
	got, err := p.pass()
	if err != nil {
		p.t.Errorf("%s: %v", when, err)
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(changes.Next{}, "After", "Written", "Settled")); d != "" {
		p.t.Errorf("%s: told: -want, +got:\n%s", when, d)
	}
}

// TestToldProgress is about what passes tell of the change that they come to know.
func TestToldProgress(t *testing.T) {
	later := temporaryError{delay: 10 * time.Second}
	run(t, map[string]scenario{
		"Open": {"who is not selected does not count; who has ended waits for nothing, whatever its record says, but " +
			"the change is as old as its oldest handler", func(w *world) {
			w.remembers("other", false, -9*time.Hour, time.Hour)
			w.remembers("ended", true, -2*time.Hour, time.Hour)
			w.remembers("late", false, -time.Hour, 30*time.Minute)
			p := w.start(onCreate("other", ok, never), onCreate("ended", ok), onCreate("new", fails(1, later)),
				onCreate("late", ok), onCreate("soon", ok))
			now := time.Now()
			p.wantNext("at first", changes.Next{Open: true, Since: now.Add(-2 * time.Hour), Waiting: []changes.Waiting{
				{Handler: "late", Until: now.Add(30 * time.Minute)}, {Handler: "new", Until: now.Add(10 * time.Second)},
			}})
			time.Sleep(10 * time.Second)
			p.wantNext("later", changes.Next{Open: true, Since: now.Add(-2 * time.Hour), Waiting: []changes.Waiting{
				{Handler: "late", Until: now.Add(30 * time.Minute)},
			}})
			time.Sleep(time.Hour)
			p.wantNext("all have ended", changes.Next{Closed: cause.Create})
			p.wantNext("nothing has happened", changes.Next{})
		}},
		"ForNobody": {"a change that is for no handler is not handled", func(w *world) {
			w.start(onCreate("a", ok, never)).wantNext("at once", changes.Next{})
		}},
		"Unwritten": {"a change is open until its end is written, by whatever pass", func(w *world) {
			p := w.start(onCreate("a", fails(1, later)))
			began := time.Now()
			w.before = func(write) error { return memapi.Refusal(http.StatusInternalServerError) }
			_, _ = p.pass()
			w.before = nil
			p.wantNext("a retry waits", changes.Next{Open: true, Since: began, Waiting: []changes.Waiting{
				{Handler: "a", Until: began.Add(10 * time.Second)},
			}})
			time.Sleep(10 * time.Second)
			w.before = func(write) error { return memapi.Refusal(http.StatusInternalServerError) }
			_, _ = p.pass()
			w.before = nil
			p.wantNext("it has ended", changes.Next{Closed: cause.Create})
		}},
	})
}
