package inspection

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/kopf-runtime/kopf-runtime/peering"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

const (
	// maxStreams limits the number of open pages, as each costs a goroutine and regular work.
	maxStreams = 16
	// maxRows limits the number of objects, and of retries, that a page shows.
	maxRows = 100
	// interval is the time between two checks for changes.
	interval = time.Second
	// heartbeat is the longest time without an event. A client without an event for longer can assume that the
	// connection is broken.
	heartbeat = 15 * time.Second
	// writeTimeout limits the time that a client takes to receive one event, so that a suspended browser does not block
	// the goroutine.
	writeTimeout = 10 * time.Second
)

// operator is the state of the operator, apart from its objects.
type operator struct {
	journal.OperatorState
	Peers []peering.Peer `json:"peers"`
}

// serveStream serves server-sent events to one page, at most once a second. The events "operator" and "objects" contain
// the complete state, and are only sent when it changed; "beat" is sent when nothing changed for long.
func (c *Console) serveStream(w http.ResponseWriter, r *http.Request) {
	query := Query{
		Kind: r.URL.Query().Get("kind"), State: ObjectCondition(r.URL.Query().Get("state")),
		Text: r.URL.Query().Get("text"), Limit: maxRows,
	}
	// The pattern "GET" of the mux also matches HEAD requests, which must not start a stream.
	if r.Method != http.MethodGet {
		http.Error(w, "there is nothing but a stream to get", http.StatusMethodNotAllowed)
		return
	}
	select {
	case c.streams <- struct{}{}:
		// Keep the place until the client leaves.
		defer func() { <-c.streams }()
	default:
		http.Error(w, fmt.Sprintf("%d pages are open already: close one of them", maxStreams),
			http.StatusServiceUnavailable)
		return
	}
	s := &stream{writer: w, control: http.NewResponseController(w)}
	// The server limits the time of requests, but a stream has no end. If the deadline cannot be changed, there is
	// none.
	_ = s.control.SetReadDeadline(time.Time{})
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if c.sendChanges(s, query) != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

// sendChanges sends the parts of the state that have changed since the last call.
func (c *Console) sendChanges(s *stream, query Query) error {
	now := operator{OperatorState: c.journal.OperatorState(), Peers: []peering.Peer{}}
	if c.peers != nil {
		now.Peers = append(now.Peers, c.peers()...)
	}
	if err := s.sendIfChanged("operator", &s.operator, now); err != nil {
		return err
	}
	if err := s.sendIfChanged("objects", &s.objects, c.overview.QueryView(query)); err != nil {
		return err
	}
	// Proxies and clients close connections that are silent for long.
	if time.Since(s.sent) >= heartbeat {
		return s.writeEvent("beat", []byte("{}"))
	}
	return nil
}

// stream is the connection to one page.
type stream struct {
	writer            http.ResponseWriter
	control           *http.ResponseController
	operator, objects []byte // the data that were sent last
	sent              time.Time
}

// sendIfChanged sends an event, unless its data equal the last ones.
func (s *stream) sendIfChanged(event string, last *[]byte, what any) error {
	data, err := json.Marshal(what)
	if err != nil {
		return fmt.Errorf("encoding the event %s: %w", event, err)
	}
	if bytes.Equal(data, *last) {
		return nil
	}
	*last = data
	return s.writeEvent(event, data)
}

// writeEvent writes one server-sent event and flushes it. The data are JSON, which contains no line breaks.
func (s *stream) writeEvent(event string, data []byte) error {
	s.sent = time.Now()
	_ = s.control.SetWriteDeadline(s.sent.Add(writeTimeout)) // if it cannot be set, there is none
	if _, err := fmt.Fprintf(s.writer, "event: %s\ndata: %s\n\n", event, data); err != nil {
		return fmt.Errorf("sending the event %s: %w", event, err)
	}
	return s.control.Flush()
}
