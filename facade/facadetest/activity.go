package facadetest

import (
	"fmt"
	"strings"
	"time"
)

// Calls returns all attempts of handlers so far, in the order of their starts, including those of startup and cleanup
// activities. Index functions are not included. The calls of a program are not known.
func (r *Runner) Calls() []HandlerCall { return r.calls.copyCalls() }

// Writes returns all requests of the operator so far, except reads, in the order of the responses. They are only known
// for operators that are started [Against] a cluster.
func (r *Runner) Writes() []Write { return r.writes.copyWrites(r.calls.zeroTime()) }

// Settle waits until the operator is idle: for the duration of calm, no handler has been called or has run, except for
// daemons, and nothing has been written. Kubernetes events, keep-alives and leases are ignored. Calm must be longer
// than the delays between retries; in a bubble of testing/synctest, an hour costs nothing. The test ends here if that
// takes longer than the limit.
func (r *Runner) Settle(calm, limit time.Duration) {
	r.t.Helper()
	r.requireInProcess("Settle")
	end := time.Now().Add(limit)
	for {
		before := r.currentMark()
		time.Sleep(calm)
		news := r.activitySince(before)
		if len(news) == 0 {
			return
		}
		if !time.Now().Before(end) {
			r.t.Fatalf("%s has not come to rest in %s; its activity in the last %s:\n%s",
				r.name, limit, calm, strings.Join(news, "\n"))
		}
	}
}

// Quiet fails the test if a handler is called, or anything is written, in this time. It ignores the same activity as
// [Runner.Settle].
func (r *Runner) Quiet(during time.Duration) {
	r.t.Helper()
	r.requireInProcess("Quiet")
	before := r.currentMark()
	time.Sleep(during)
	if news := r.activitySince(before); len(news) > 0 {
		r.t.Errorf("%s has not been quiet for %s:\n%s", r.name, during, strings.Join(news, "\n"))
	}
}

// requireInProcess ends the test if the operator is a program: only its own process could record calls and writes.
func (r *Runner) requireInProcess(what string) {
	r.t.Helper()
	if r.ready == nil {
		r.t.Fatalf("facadetest: %s is for operators in the process of the test: use Await for a program", what)
	}
}

// mark is a position in the recorded calls and writes.
type mark struct{ calls, writes int }

// currentMark returns the present position.
func (r *Runner) currentMark() mark { return mark{len(r.Calls()), len(r.Writes())} }

// activitySince returns the activity after the mark, one line for each call or write. A call that started before the
// mark and still runs is activity, too, unless it is a daemon.
func (r *Runner) activitySince(m mark) (news []string) {
	for i, c := range r.Calls() {
		if i >= m.calls || c.Ended.IsZero() && !c.isDaemon {
			news = append(news, "called: "+c.String())
		}
	}
	for _, w := range r.Writes()[m.writes:] {
		if !w.isOperatorState() {
			news = append(news, fmt.Sprintf("written: %s %s", w, w.Body))
		}
	}
	return news
}
