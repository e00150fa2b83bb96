package facadetest

import (
	"fmt"
	"strings"
	"time"
)

// Calls are all attempts of handlers so far, in the order in which they began, those of startups and cleanups included.
// Index functions are not among them, and there are none for a program.
func (r *Runner) Calls() []HandlerCall { return r.calls.list() }

// Writes are all requests of the operator so far that were no reads, in the order of the answers. They are known for
// operators that are started [Against] a cluster.
func (r *Runner) Writes() []Write { return r.writes.list(r.calls.beginning()) }

// Settle waits until nothing happens any more: until no handler has been called or has run, except for daemons, and
// nothing has been written, for as long as calm is. Kubernetes events, keep-alives and leases are not looked at. Calm
// must be longer than the delays between retries; in a bubble of testing/synctest, an hour costs nothing. The test ends
// here if that takes longer than the limit.
func (r *Runner) Settle(calm, limit time.Duration) {
	r.t.Helper()
	r.observable("Settle")
	end := time.Now().Add(limit)
	for {
		before := r.mark()
		time.Sleep(calm)
		news := r.since(before)
		if len(news) == 0 {
			return
		}
		if !time.Now().Before(end) {
			r.t.Fatalf("%s has not come to rest in %s; what it did in the last %s:\n%s",
				r.name, limit, calm, strings.Join(news, "\n"))
		}
	}
}

// Quiet fails the test if a handler is called, or anything is written, in this time: as Settle looks at it.
func (r *Runner) Quiet(during time.Duration) {
	r.t.Helper()
	r.observable("Quiet")
	before := r.mark()
	time.Sleep(during)
	if news := r.since(before); len(news) > 0 {
		r.t.Errorf("%s has not been quiet for %s:\n%s", r.name, during, strings.Join(news, "\n"))
	}
}

// observable ends a test that asks a program for what only its process knows.
func (r *Runner) observable(what string) {
	r.t.Helper()
	if r.ready == nil {
		r.t.Fatalf("facadetest: %s is for operators in the process of the test: use Await for a program", what)
	}
}

// mark is a place in what has happened.
type mark struct{ calls, writes int }

func (r *Runner) mark() mark { return mark{len(r.Calls()), len(r.Writes())} }

// since tells what has happened, one line for each.
func (r *Runner) since(m mark) (news []string) {
	for i, c := range r.Calls() {
		if i >= m.calls || c.Ended.IsZero() && !c.lasting {
			news = append(news, "called: "+c.String())
		}
	}
	for _, w := range r.Writes()[m.writes:] {
		if !w.ofItself() {
			news = append(news, fmt.Sprintf("written: %s %s", w, w.Body))
		}
	}
	return news
}
