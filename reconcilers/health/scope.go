package health

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/transport"
)

// WatchedScope is one resource, in one namespace or in all, that is listed and watched. A nil Scope ignores all
// reports.
type WatchedScope struct {
	name string

	mu           sync.Mutex
	refused      bool      // [WatchedScope.ReportRefused] was called: the log has the reason
	paused       bool      // the namespace is paused
	synced       bool      // the first list has succeeded
	openWatches  int       // the number of open watches
	lastWatchEnd time.Time // when the last of them ended
	lastError    error     // of the last list or watch
	running      bool      // the controller runs
	lastReceived time.Time // the last list, event or bookmark
}

// ReportStart reports that the controller starts, and lists the objects again.
func (s *WatchedScope) ReportStart() {
	s.applyReport(func() {
		s.refused, s.paused, s.synced, s.lastError, s.lastWatchEnd = false, false, false, nil, time.Now()
		s.running, s.lastReceived = true, s.lastWatchEnd
	})
}

// ReportEnd reports that the controller has ended: its list is no longer kept up to date.
func (s *WatchedScope) ReportEnd() {
	s.applyReport(func() { s.synced, s.lastError, s.running = false, nil, false })
}

// ReportRefused reports that the scope is not served although it was announced. The checks ignore it, and the log has
// the reason.
func (s *WatchedScope) ReportRefused() { s.applyReport(func() { s.refused = true }) }

// ReportPaused reports that the scope is not served until the next [WatchedScope.ReportStart]: its namespace is paused.
func (s *WatchedScope) ReportPaused() { s.applyReport(func() { s.paused = true }) }

// ReportSynced reports that the first list has succeeded.
func (s *WatchedScope) ReportSynced() {
	s.applyReport(func() { s.synced, s.lastError, s.lastReceived = true, nil, time.Now() })
}

// SilentFor returns the time since the last list, event or bookmark. A new watch does not count, as it may never
// deliver anything. It returns false while no controller is running.
func (s *WatchedScope) SilentFor() (time.Duration, bool) {
	if s == nil {
		return 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.lastReceived), s.running && !s.refused
}

// ReportFailure reports why the scope cannot be listed or watched now.
func (s *WatchedScope) ReportFailure(err error) { s.applyReport(func() { s.lastError = err }) }

// applyReport runs the report under the lock.
func (s *WatchedScope) applyReport(report func()) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	report()
}

// checkSynced returns an error until the cache has the first list.
func (s *WatchedScope) checkSynced() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.refused || s.paused || s.synced:
		return nil
	case s.lastError != nil:
		return fmt.Errorf("%s: not listed yet: %w", s.name, s.lastError)
	default:
		return fmt.Errorf("%s: not listed yet", s.name)
	}
}

// checkWatched returns an error if there has been no watch for longer than the limit.
func (s *WatchedScope) checkWatched(limit time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	silent := time.Since(s.lastWatchEnd).Round(time.Second)
	switch {
	// silent is only valid without a watch
	case s.refused || s.paused || !s.synced || s.openWatches > 0 || silent < limit:
		return nil
	case s.lastError != nil:
		return fmt.Errorf("%s: not watched for %s: %w", s.name, silent, s.lastError)
	default:
		return fmt.Errorf("%s: not watched for %s", s.name, silent)
	}
}

// ObserveWatches reports the watches among the requests of the scope.
func (s *WatchedScope) ObserveWatches(next transport.RoundTripFunc) transport.RoundTripFunc {
	return func(r *http.Request) (*http.Response, error) {
		response, err := next(r)
		// Only an accepted watch counts: the body of an error is a Status.
		if err == nil && response.StatusCode == http.StatusOK && r.URL.Query().Get("watch") == "true" {
			s.applyReport(func() { s.openWatches++ })
			response.Body = &watch{ReadCloser: response.Body, scope: s}
		}
		return response, err
	}
}

// watch is the body of the response to a watch request. It reports the received bytes and the end of the watch.
type watch struct {
	io.ReadCloser

	scope *WatchedScope
	once  sync.Once // Close can be called more than once
}

// Read reports that the watch is alive. All received bytes count, including bookmarks.
func (w *watch) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if n > 0 {
		w.scope.applyReport(func() { w.scope.lastReceived = time.Now() })
	}
	return n, err
}

// Close reports the end of the watch once.
func (w *watch) Close() error {
	w.once.Do(func() {
		w.scope.applyReport(func() {
			w.scope.openWatches--
			w.scope.lastWatchEnd = time.Now()
		})
	})
	return w.ReadCloser.Close()
}
