package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/kopf-runtime/kopf-runtime/peering/attendance"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

const (
	// mostStreams is how many pages are kept up to date at once.
	mostStreams = 16
	// mostRows is how many objects, and how many retries, a page gets.
	mostRows = 100
	// interval is how often it is found out whether there is something new.
	interval = time.Second
	// heartbeat is the longest silence: whoever hears nothing for longer may take the stream for broken.
	heartbeat = 15 * time.Second
	// writeTimeout is how long a client may take to receive one event.
	writeTimeout = 10 * time.Second
)

// operator is what the page shows besides objects.
type operator struct {
	journal.Standing
	Peers []attendance.Peer `json:"peers"`
}

// stream sends what is new, once a second at most: as server-sent events "operator" and "objects", each with all that
// there is to know, and "beat" when there is nothing new.
func (c *Console) stream(w http.ResponseWriter, r *http.Request) {
	query := Query{
		Kind: r.URL.Query().Get("kind"), State: State(r.URL.Query().Get("state")),
		Text: r.URL.Query().Get("text"), Most: mostRows,
	}
	if r.Method != http.MethodGet {
		http.Error(w, "there is nothing but a stream to get", http.StatusMethodNotAllowed)
		return
	}
	select {
	case c.streams <- struct{}{}:
		defer func() { <-c.streams }()
	default:
		http.Error(w, fmt.Sprintf("%d pages are open already: close one of them", mostStreams),
			http.StatusServiceUnavailable)
		return
	}
	s := &stream{to: w, control: http.NewResponseController(w)}
	// The server's own limits are for requests that end. What cannot be set has none.
	_ = s.control.SetReadDeadline(time.Time{})
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if c.sendNews(s, query) != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

// sendNews sends what has changed since the last time.
func (c *Console) sendNews(s *stream, query Query) error {
	now := operator{Standing: c.journal.Standing(), Peers: []attendance.Peer{}}
	if c.peers != nil {
		now.Peers = append(now.Peers, c.peers()...)
	}
	if err := s.send("operator", &s.operator, now); err != nil {
		return err
	}
	if err := s.send("objects", &s.objects, c.overview.Look(query)); err != nil {
		return err
	}
	if time.Since(s.sent) >= heartbeat {
		return s.write("beat", []byte("{}"))
	}
	return nil
}

// stream is one client that is told.
type stream struct {
	to                http.ResponseWriter
	control           *http.ResponseController
	operator, objects []byte // as they were sent last
	sent              time.Time
}

// send sends an event, unless it is as the last one.
func (s *stream) send(event string, last *[]byte, what any) error {
	data, err := json.Marshal(what)
	if err != nil {
		return fmt.Errorf("encoding the event %s: %w", event, err)
	}
	if bytes.Equal(data, *last) {
		return nil
	}
	*last = data
	return s.write(event, data)
}

func (s *stream) write(event string, data []byte) error {
	s.sent = time.Now()
	_ = s.control.SetWriteDeadline(s.sent.Add(writeTimeout)) // what cannot be set has none
	if _, err := fmt.Fprintf(s.to, "event: %s\ndata: %s\n\n", event, data); err != nil {
		return fmt.Errorf("sending the event %s: %w", event, err)
	}
	return s.control.Flush()
}
