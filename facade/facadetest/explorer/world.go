package explorer

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/internal/standstill"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

const (
	// restart is how long no operator runs after a kill.
	restart = time.Second
	// mostFalls is how often an operator may end by itself.
	mostFalls = 10
	// mostPoints is how many points a run may have.
	mostPoints = 2000
)

var errPlanned = errors.New("this is planned by the explorer")

// world is one course under way: the API server, the people, the operator that dies on the way, and what is outside.
type world struct {
	bench    *bench
	settings settings
	scenario Scenario
	server   *memapi.Server
	client   client.Client // of people
	began    time.Time

	opened          chan struct{} // closed when the operator has started
	stopping, ended chan struct{} // of the operator
	over            chan struct{} // closed when the course is judged
	effects         chan struct{} // has room for one effect

	mu     sync.Mutex
	lives  int
	life   *Life // the present one
	counts map[string]int
	pulse  time.Time // when something happened last
	ticked time.Time // when something in the background was called last
	active map[*attempt]bool
	names  names
	run    *run
}

// play plays a scenario on one course.
func play(t *testing.T, scenario func() Scenario, s settings, c course) *run {
	t.Helper()
	r := &run{course: c, held: map[string]bool{}}
	guarded(t, c, func(t *testing.T) {
		w := &world{
			settings: s, run: r, began: time.Now(), counts: map[string]int{}, active: map[*attempt]bool{},
			opened: make(chan struct{}), over: make(chan struct{}), effects: make(chan struct{}, 1),
			stopping: make(chan struct{}), ended: make(chan struct{}),
		}
		w.bench = &bench{TB: t, scenario: scenario, failed: w.fail}
		alone(w.begin)
		if w.server != nil {
			go alone(w.operate)
			alone(w.act)
			w.end()
		}
		w.bench.end()
	})
	return r
}

// guarded runs a course in a bubble. If the bubble stands still, the test ends here, and leaves the bubble behind.
func guarded(t *testing.T, c course, f func(t *testing.T)) {
	t.Helper()
	stuck, done, returned := make(chan string, 1), make(chan struct{}), false
	go func() {
		defer close(done)
		synctest.Test(t, func(t *testing.T) {
			defer standstill.Guard(func(text string) { stuck <- text })()
			f(t)
		})
		returned = true
	}()
	select {
	case text := <-stuck:
		t.Fatalf("explorer: course %s: %s\n\nPlay it again: %s", c, text, command(t.Name(), c.String()))
	case <-done:
		if !returned {
			t.FailNow()
		}
	}
}

// alone calls a function that may end its goroutine.
func alone(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

func (w *world) begin() {
	w.scenario = w.bench.scenario()
	w.scenario.fill(w.bench)
	server := w.scenario.Server(w.bench)
	server.CollectGarbage(0)
	types := w.scenario.Scheme
	if types == nil {
		types = scheme.Scheme
	}
	people, err := client.New(memapi.Config(&people{world: w, server: server}), client.Options{Scheme: types})
	if err != nil {
		w.bench.Fatalf("making a client for people: %v", err)
	}
	w.client, w.server = people, server
	w.run.beginning = w.state()
}

// act is all that is looked at.
func (w *world) act() {
	<-w.opened
	p := &Play{Client: w.client, T: w.bench, world: w}
	w.scenario.Play(p)
	p.Settle()
	w.resume(p)
	w.run.finally = w.state()
	w.run.complete = true
	if !w.settings.keep && !w.isExhausted() {
		w.clear(p)
		w.run.leftover = w.state()
		w.run.cleared = true
	}
}

// resume starts the operator again if a start calls functions or writes anything. Each kill leads to such a start, so
// all courses need one before they are compared. The uncut course finds out whether it is needed.
func (w *world) resume(p *Play) {
	if w.isExhausted() || !w.settings.resumes && len(w.run.course) > 0 {
		return
	}
	w.mu.Lock()
	called, reached := len(w.run.attempts), len(w.run.points)
	if !w.life.dead {
		w.life.end("is restarted, because everything is idle")
	}
	w.mu.Unlock()
	p.Settle()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.run.resumes = len(w.run.attempts) > called || len(w.run.points) > reached
}

// end lets all go that is left of the lives.
func (w *world) end() {
	w.mu.Lock()
	w.run.closed = true
	w.mu.Unlock()
	close(w.stopping)
	<-w.ended
	close(w.over)
}

// isExhausted tells whether the operator was ended because it never comes to rest.
func (w *world) isExhausted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.run.exhausted
}

// fail is a failure of the test on this course.
func (w *world) fail(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.run.closed {
		w.run.violate(Broken, "", text)
	}
}

// count gives the place of the next one of a subject, such as write-2-of-databases/orders.
func (w *world) count(what, subject string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what+" "+subject]++
	return fmt.Sprintf("%s-%d-of-%s", what, w.counts[what+" "+subject], subject)
}

// strikes tells whether something goes wrong here, once. It is called with the lock.
func (w *world) strikes(t trouble) bool {
	if !slices.Contains(w.run.course, t) || slices.Contains(w.run.struck, t) {
		return false
	}
	w.run.struck = append(w.run.struck, t)
	return true
}

// troubleAt is what goes wrong with a write.
func (w *world) troubleAt(l *Life, place string) disturbance {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.run.course {
		due := t.place == place || t.place == nextLife && l.number > 1
		if t.what == cut || t.place == "" || !due || !w.strikes(t) {
			continue
		}
		w.run.noteAt(w.since(), "the API", fmt.Sprintf("%s at %s", t.what, place))
		w.run.disturbed = append(w.run.disturbed, w.since())
		return t.what
	}
	return ""
}

// since is the time of the course. It is called with or without the lock.
func (w *world) since() time.Duration { return time.Since(w.began) }

// note writes a line of the history.
func (w *world) note(l *Life, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !l.dead {
		w.run.noteAt(w.since(), fmt.Sprintf("life %d", l.number), text)
	}
}
