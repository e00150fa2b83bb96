package changes_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
)

// storeRecord stores a record of the creation on the object; its start and its next attempt are relative to now.
func (w *harness) storeRecord(id string, success bool, began, next time.Duration) {
	at := func(d time.Duration) string {
		return time.Now().Add(d).UTC().Format("2006-01-02T15:04:05.000000+00:00")
	}
	w.set(fmt.Sprintf(
		`{"started":%q,"delayed":%q,"purpose":"create","retries":1,"success":%t,"failure":false}`,
		at(began), at(next), success,
	), "metadata", "annotations", prefix+"/"+id)
}

// wantNext compares the progress that a pass reports.
func (p *process) wantNext(when string, want changes.PassResult) {
	p.t.Helper()
	got, err := p.pass()
	if err != nil {
		p.t.Errorf("%s: %v", when, err)
	}
	ignored := cmpopts.IgnoreFields(changes.PassResult{}, "RequeueAfter", "Answer", "Settled")
	if d := cmp.Diff(want, got, ignored); d != "" {
		p.t.Errorf("%s: reported: -want, +got:\n%s", when, d)
	}
}

// TestReportedProgress shows which progress of a change the passes report.
func TestReportedProgress(t *testing.T) {
	later := temporaryError{delay: 10 * time.Second}
	run(t, map[string]scenario{
		"Open": {"progress counts only selected handlers; finished ones do not wait, but count for the " +
			"age of the change", func(w *harness) {
			w.storeRecord("other", false, -9*time.Hour, time.Hour)
			w.storeRecord("ended", true, -2*time.Hour, time.Hour)
			w.storeRecord("late", false, -time.Hour, 30*time.Minute)
			p := w.start(onCreate("other", ok, ifNever), onCreate("ended", ok), onCreate("new", fails(1, later)),
				onCreate("late", ok), onCreate("soon", ok))
			now := time.Now()
			p.wantNext("at first", changes.PassResult{HasOpenChange: true, OpenSince: now.Add(-2 * time.Hour),
				WaitingHandlers: []changes.WaitingHandler{
					{Handler: "late", Until: now.Add(30 * time.Minute)},
					{Handler: "new", Until: now.Add(10 * time.Second)},
				}})
			time.Sleep(10 * time.Second)
			p.wantNext("later", changes.PassResult{HasOpenChange: true, OpenSince: now.Add(-2 * time.Hour),
				WaitingHandlers: []changes.WaitingHandler{
					{Handler: "late", Until: now.Add(30 * time.Minute)},
				}})
			time.Sleep(time.Hour)
			p.wantNext("all handlers have ended", changes.PassResult{ClosedReason: cause.Create})
			p.wantNext("no change", changes.PassResult{})
		}},
		"ForNobody": {"a change without a matching handler is not reported", func(w *harness) {
			w.start(onCreate("a", ok, ifNever)).wantNext("at once", changes.PassResult{})
		}},
		"Unwritten": {"a change is open until a pass writes its end", func(w *harness) {
			p := w.start(onCreate("a", fails(1, later)))
			began := time.Now()
			w.before = func(write) error { return memapi.NewRefusal(http.StatusInternalServerError) }
			_, _ = p.pass()
			w.before = nil
			p.wantNext("a retry waits", changes.PassResult{HasOpenChange: true, OpenSince: began,
				WaitingHandlers: []changes.WaitingHandler{
					{Handler: "a", Until: began.Add(10 * time.Second)},
				}})
			time.Sleep(10 * time.Second)
			w.before = func(write) error { return memapi.NewRefusal(http.StatusInternalServerError) }
			_, _ = p.pass()
			w.before = nil
			p.wantNext("the end is written", changes.PassResult{ClosedReason: cause.Create})
		}},
	})
}
