package activities

import (
	"fmt"
	"sync"
	"time"
)

// progress records which handler a run is calling, for the [HangingError]. A nil progress records nothing.
type progress struct {
	mu      sync.Mutex
	handler string // the last handler that was called
	since   time.Time
	running bool
	err     error // of the handler's last attempt
}

// recordStart records the start of a handler.
func (p *progress) recordStart(id string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handler, p.since, p.running, p.err = id, time.Now(), true, nil
}

// recordReturn records that the handler has returned, with its error.
func (p *progress) recordReturn(err error) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running, p.err = false, err
}

// String describes the state in words, as the end of an error message.
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

// HangingError reports that a probing takes too long. The probing continues.
type HangingError struct {
	// Elapsed is how long it has been running.
	Elapsed time.Duration
	// Progress describes the current handler, as in [progress.String].
	Progress string
}

// Error returns the duration and the current handler.
func (e *HangingError) Error() string {
	return fmt.Sprintf("the probes are not finished after %s: %s", e.Elapsed, e.Progress)
}
