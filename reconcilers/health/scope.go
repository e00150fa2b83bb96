package health

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/transport"
)

// Scope is one resource, in one namespace or in all, that is listed and watched. Nil takes all reports.
type Scope struct {
	name string

	mu      sync.Mutex
	refused bool
	paused  bool
	synced  bool
	open    int       // watches
	lost    time.Time // when the last of them ended
	problem error     // that of the last list or watch
	running bool      // its controller
	heard   time.Time // when it was listed, or a watch has told anything
}

// Begin notes that its controller starts, and lists it anew.
func (s *Scope) Begin() {
	s.change(func() {
		s.refused, s.paused, s.synced, s.problem, s.lost = false, false, false, nil, time.Now()
		s.running, s.heard = true, s.lost
	})
}

// End notes that its controller has ended: what it has listed does not count any more.
func (s *Scope) End() { s.change(func() { s.synced, s.problem, s.running = false, nil, false }) }

// Refuse notes that it is not served, though it was announced: the log says why.
func (s *Scope) Refuse() { s.change(func() { s.refused = true }) }

// Pause notes that it is not served before the next Begin, as its namespace is paused.
func (s *Scope) Pause() { s.change(func() { s.paused = true }) }

// Synced notes that it is listed.
func (s *Scope) Synced() { s.change(func() { s.synced, s.problem, s.heard = true, nil, time.Now() }) }

// Silence is for how long nothing was heard of it: no list, no event, no bookmark. That a new watch is granted does not
// count, as nothing may come by it. It is false while no controller wants to hear anything.
func (s *Scope) Silence() (time.Duration, bool) {
	if s == nil {
		return 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.heard), s.running && !s.refused
}

// Failed notes why it cannot be listed or watched now.
func (s *Scope) Failed(err error) { s.change(func() { s.problem = err }) }

func (s *Scope) change(report func()) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	report()
}

// unsynced says what the cache waits for; nil if it is complete.
func (s *Scope) unsynced() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.refused || s.paused || s.synced:
		return nil
	case s.problem != nil:
		return fmt.Errorf("%s: not listed yet: %w", s.name, s.problem)
	default:
		return fmt.Errorf("%s: not listed yet", s.name)
	}
}

// unwatched says since when there is no watch, if that is longer than the limit.
func (s *Scope) unwatched(limit time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	silent := time.Since(s.lost).Round(time.Second)
	switch {
	case s.refused || s.paused || !s.synced || s.open > 0 || silent < limit:
		return nil
	case s.problem != nil:
		return fmt.Errorf("%s: not watched for %s: %w", s.name, silent, s.problem)
	default:
		return fmt.Errorf("%s: not watched for %s", s.name, silent)
	}
}

// Around reports the watches among the requests as those of the scope.
func (s *Scope) Around(next transport.RoundTripFunc) transport.RoundTripFunc {
	return func(r *http.Request) (*http.Response, error) {
		response, err := next(r)
		if err == nil && response.StatusCode == http.StatusOK && r.URL.Query().Get("watch") == "true" {
			s.change(func() { s.open++ })
			response.Body = &watch{ReadCloser: response.Body, scope: s}
		}
		return response, err
	}
}

// watch is the body of the answer to one.
type watch struct {
	io.ReadCloser

	scope *Scope
	once  sync.Once
}

// Read is that of the body.
func (w *watch) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if n > 0 {
		w.scope.change(func() { w.scope.heard = time.Now() })
	}
	return n, err
}

// Close ends the watch.
func (w *watch) Close() error {
	w.once.Do(func() {
		w.scope.change(func() {
			w.scope.open--
			w.scope.lost = time.Now()
		})
	})
	return w.ReadCloser.Close()
}
