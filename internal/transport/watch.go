package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// These are the causes with which a watch is ended on this side.
var (
	errSilent       = errors.New("no event or bookmark arrived for too long")
	errWatchTimeout = errors.New("its time is over")
)

// sendWatch sends the request of a watch, and limits the time of its response.
func (t *limitedTransport) sendWatch(r *http.Request) (*http.Response, error) {
	key := r.URL.Path
	// Pause between two watches of the same path, so that a failing server is not flooded.
	if err := t.watchEnds.waitPause(r.Context(), key, t.limits.ReconnectBackoff); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	end := func() {
		cancel(nil)
		t.watchEnds.noteEnd(key, t.limits.ReconnectBackoff)
	}
	// One timer guards the request and later each read. A request without a response may use a dead connection: drop
	// it.
	traced, way := t.connections.traceConnection(ctx)
	s := &stream{ctx: ctx, inactivity: t.limits.InactivityTimeout, onEnd: end, connection: way,
		events: eventsOf(r.Context())}
	s.silence = newTimer(s.inactivity, func() {
		cancel(errSilent)
		if !s.answered.Load() {
			way.closeIfSilent(ctx, s.inactivity)
		}
	})
	s.lifetimeTimer = newTimer(t.limits.ClientTimeout, func() { cancel(errWatchTimeout) })
	request := t.withServerTimeout(r.WithContext(traced))
	response, err := t.next(request)
	// Until the first Read, nothing is expected from the server.
	s.silence.Stop()
	if err != nil {
		defer s.stopTimers()
		if reason := s.limitError(); reason != nil {
			return nil, fmt.Errorf("the API server did not answer a request for a watch: %w", reason)
		}
		return nil, err
	}
	s.answered.Store(true)
	way.noteReceived()
	s.source, s.path = response.Body, key
	response.Body = s
	return response, nil
}

// newTimer returns a timer that never fires if there is no limit.
func newTimer(limit time.Duration, fire func()) *time.Timer {
	if limit == 0 {
		limit = math.MaxInt64
	}
	return time.AfterFunc(limit, fire)
}

// withServerTimeout returns the request with the duration after which the server should end the watch.
func (t *limitedTransport) withServerTimeout(r *http.Request) *http.Request {
	const parameter = "timeoutSeconds"
	if t.limits.ServerTimeout == 0 {
		return r
	}
	location := *r.URL
	query := location.Query()
	// A negative limit removes the parameter of the client: the server then uses its own default.
	query.Del(parameter)
	if t.limits.ServerTimeout > 0 {
		query.Set(parameter, strconv.FormatInt(int64(math.Ceil(t.limits.ServerTimeout.Seconds())), 10))
	}
	location.RawQuery = query.Encode()
	asked := r.WithContext(r.Context()) // a copy, because a RoundTripper must not modify the request
	asked.URL = &location
	return asked
}

// stream is the response to a watch. When a limit is reached, it ends as if the server had closed it.
type stream struct {
	ctx                    context.Context //nolint:containedctx // the watch's own; it has the reason of the end
	path                   string
	source                 io.ReadCloser
	inactivity             time.Duration
	remaining              time.Duration // time left for the server to send an event
	events                 *WatchEvents  // nil counts each read as an event
	lastEventCount         uint64        // number of events at the last read
	silence, lifetimeTimer *time.Timer
	// onEnd cancels the request and records its end; once makes sure that it runs only once.
	onEnd      func()
	once       sync.Once
	connection *requestConnection
	answered   atomic.Bool
}

// limitError returns the limit that ended the watch, or nil.
func (s *stream) limitError() error {
	cause := context.Cause(s.ctx)
	if errors.Is(cause, errSilent) || errors.Is(cause, errWatchTimeout) {
		return cause
	}
	return nil
}

// Read reads from the server. The inactivity timeout only covers the time spent in Read, so that a slow reader does not
// end its watch. It restarts with each event. Bytes that never complete an event do not restart it.
func (s *stream) Read(p []byte) (int, error) {
	if s.inactivity > 0 {
		defer s.limitSilence()()
	}
	n, err := s.source.Read(p)
	if n > 0 {
		s.connection.noteReceived()
	}
	if err == nil {
		return n, nil
	}
	// io.EOF looks like the regular end of a watch, after which the client continues from the last version.
	if reason := s.limitError(); reason != nil {
		logf.FromContext(s.ctx).V(1).Info("Ended a watch; watching on from there",
			"path", s.path, "reason", reason.Error())
		return n, io.EOF
	}
	return n, err
}

// limitSilence starts the timer for one read. The returned function stops it, and subtracts the time that the read
// took.
func (s *stream) limitSilence() (stop func()) {
	if now := s.events.DecodedCount(); s.events == nil || s.remaining <= 0 || now != s.lastEventCount {
		s.lastEventCount, s.remaining = now, s.inactivity
	}
	began := time.Now()
	s.silence.Reset(s.remaining)
	return func() {
		s.silence.Stop()
		// At least 1, because zero would start the full timeout again.
		s.remaining = max(1, s.remaining-time.Since(began))
	}
}

// Close ends the watch.
func (s *stream) Close() error {
	defer s.stopTimers()
	return s.source.Close()
}

// stopTimers stops the timers, and records the end of the watch. Close and a failed request can both call it.
func (s *stream) stopTimers() {
	s.once.Do(func() {
		s.silence.Stop()
		s.lifetimeTimer.Stop()
		s.onEnd()
	})
}

// watchEnds records when watches have ended, by path, for the duration of the pause.
type watchEnds struct {
	mu     sync.Mutex
	byPath map[string]time.Time
}

// noteEnd records the end of a watch, and removes those that ended longer than a pause ago.
func (e *watchEnds) noteEnd(key string, pause time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.byPath, func(_ string, ended time.Time) bool { return time.Since(ended) >= pause })
	e.byPath[key] = time.Now()
}

// waitPause waits until the pause after the last watch of this path is over, or the context ends.
func (e *watchEnds) waitPause(ctx context.Context, key string, pause time.Duration) error {
	e.mu.Lock()
	ended, known := e.byPath[key]
	e.mu.Unlock()
	rest := pause - time.Since(ended)
	if !known || rest <= 0 {
		return ctx.Err()
	}
	return WaitDelay(ctx, rest)
}

// WatchEvents counts the events that a client has decoded, over one watch after another. If the context of a watch has
// one, the inactivity timeout restarts with each event; otherwise it restarts with each read. The zero value is ready
// to use.
type WatchEvents struct{ decoded atomic.Uint64 }

// eventsKey is the context key of Events.
type eventsKey struct{}

// WithEvents returns a context for watches whose client reports events to e.
func WithEvents(ctx context.Context, e *WatchEvents) context.Context {
	return context.WithValue(ctx, eventsKey{}, e)
}

// eventsOf returns the counter of the context, or nil.
func eventsOf(ctx context.Context) *WatchEvents {
	e, _ := ctx.Value(eventsKey{}).(*WatchEvents)
	return e
}

// NoteDecoded counts one event. Any goroutine may call it.
func (e *WatchEvents) NoteDecoded() { e.decoded.Add(1) }

// DecodedCount returns the number of events so far; 0 for nil.
func (e *WatchEvents) DecodedCount() uint64 {
	if e == nil {
		return 0
	}
	return e.decoded.Load()
}
