package background

import "sync"

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

// runAll goes on with those that wait: their turn costs no new goroutine.
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
