package activities

import (
	"fmt"
	"sync"
	"time"
)

// progress is what an activity is busy with. Nil is told nothing.
type progress struct {
	mu      sync.Mutex
	handler string
	since   time.Time
	running bool
	err     error // of its last attempt
}

// enter notes that a handler is called.
func (p *progress) enter(id string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handler, p.since, p.running, p.err = id, time.Now(), true, nil
}

// leave notes that it has returned.
func (p *progress) leave(err error) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running, p.err = false, err
}

// String says it.
func (p *progress) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.running:
		return fmt.Sprintf("handler %q has been running for %s", p.handler, time.Since(p.since).Round(time.Second))
	case p.err != nil:
		return fmt.Sprintf("handler %q waits for another attempt: %s", p.handler, p.err)
	default:
		return fmt.Sprintf("after handler %q", p.handler)
	}
}

// HangingError is that of a probing that takes too long. It goes on meanwhile.
type HangingError struct {
	// After is for how long it has been running.
	After time.Duration
	// Busy says what it is busy with.
	Busy string
}

// Error has both.
func (e *HangingError) Error() string {
	return fmt.Sprintf("the probes are not finished after %s: %s", e.After, e.Busy)
}
