package background

import (
	"context"
	"sync"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// beginRun prepares a run of the function. The caller holds the lock.
func (t *task) beginRun() context.Context {
	ctx, cancel := context.WithCancelCause(t.withLogger(context.Background()))
	t.running, t.stopping, t.cancel, t.released, t.pressing = true, make(chan struct{}), cancel, false, false
	t.writing = make(chan struct{}, 1)
	t.object.supervisor.running.Add(1)
	return ctx
}

// endRun cleans up after it. The caller holds the lock.
func (t *task) endRun() {
	t.running = false
	t.cancel(nil)
	t.stopWaiting()
}

// launch runs a daemon as soon as the limit of daemons allows it. The caller holds the lock.
func (t *task) launch() {
	if waits, after := t.object.supervisor.Daemons.Go(t.daemon); waits {
		t.log().Info("Daemon waits for others to end: the limit of running daemons is reached",
			"limit", t.object.supervisor.Daemons.Most, "ahead", after)
	}
}

// daemon runs a daemon from its initial delay to its end.
func (t *task) daemon() {
	t.object.mu.Lock()
	if t.reason != 0 { // somebody stopped it while it waited for its turn, and removed it
		t.object.mu.Unlock()
		return
	}
	ctx := t.beginRun()
	delay := t.initialDelay()
	t.object.mu.Unlock()
	t.attempts(ctx, delay)
	t.object.mu.Lock()
	defer t.object.mu.Unlock()
	t.endRun()
	t.end()
}

// attempts calls the function until it has returned for good, or has to end.
func (t *task) attempts(ctx context.Context, delay time.Duration) {
	if !t.sleep(delay) {
		return
	}
	t.started = time.Now()
	for {
		o := t.attempt(ctx)
		switch {
		case t.isStopping() || o.Final:
			return
		case !o.Aborted:
			t.retries++
		}
		if !t.sleep(delayOf(o)) {
			return
		}
	}
}

// delayOf is how long to wait for the next attempt. A function that cannot be called with its object is tried again
// from time to time.
func delayOf(o execution.Outcome) time.Duration {
	switch {
	case o.Delay != nil:
		return *o.Delay
	case o.Blocked:
		return execution.DefaultBackoff
	default:
		return 0
	}
}

// sleep is false if the task has to end.
func (t *task) sleep(delay time.Duration) bool {
	if delay <= 0 {
		return !t.isStopping()
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-t.stopping:
		return false
	case <-timer.C:
		return true
	}
}

func (t *task) isStopping() bool {
	select {
	case <-t.stopping:
		return true
	default:
		return false
	}
}

// Limit bounds how many functions run at once. Further ones wait, in order. The zero value bounds nothing.
type Limit struct {
	// Most is how many may run; zero is any number.
	Most int

	mu      sync.Mutex
	running int
	waiting []func()
}

// Go runs the function on a goroutine of its own, as soon as it may. It tells whether that has to wait, after how many
// others.
func (l *Limit) Go(run func()) (waits bool, after int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Most > 0 && l.running >= l.Most {
		l.waiting = append(l.waiting, run)
		return true, len(l.waiting) - 1
	}
	l.running++
	go l.runAll(run)
	return false, 0
}

// runAll runs those that wait on the same goroutine, one after another.
func (l *Limit) runAll(run func()) {
	for run != nil {
		run()
		run = l.next()
	}
}

func (l *Limit) next() (run func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.running--
		return nil
	}
	run, l.waiting = l.waiting[0], l.waiting[1:]
	return run
}
