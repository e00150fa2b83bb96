package reconcilers_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// replayConnection is the operator's connection. It delays the events of own writes, lets other clients write before a
// write, and refuses writes.
type replayConnection struct {
	next    http.RoundTripper
	plural  string
	latency time.Duration
	change  func(ctx context.Context, patch map[string]any)

	writeMu sync.RWMutex // held during a write, until its version is known as our own

	mu              sync.Mutex
	interferences   []any           // the change by another client before each write; null for none
	failures        []any           // the HTTP status instead of each write; null to serve it
	ownVersions     map[string]bool // the versions of own writes
	hiddenCreations int             // the number of creations whose events are dropped
	watches         []io.Writer
}

func (l *replayConnection) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPatch {
		if refused := l.disturb(r); refused != nil {
			return refused, nil
		}
		l.writeMu.Lock()
		defer l.writeMu.Unlock()
	}
	response, err := l.next.RoundTrip(r)
	switch {
	case err != nil:
		return nil, err
	case r.Method == http.MethodPatch:
		return response, l.note(response)
	case r.URL.Query().Get("watch") != "" && strings.HasSuffix(r.URL.Path, "/"+l.plural):
		response.Body = l.watch(response.Body)
	}
	return response, nil
}

// disturb lets another client write first, or refuses the write.
func (l *replayConnection) disturb(r *http.Request) *http.Response {
	l.mu.Lock()
	interference, failure := pop(&l.interferences), pop(&l.failures)
	l.mu.Unlock()
	if patch, is := interference.(map[string]any); is {
		l.change(r.Context(), patch)
	}
	if failure == nil {
		return nil
	}
	code := int(number(failure))
	data, _ := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "message": "refused on purpose",
		"reason": reasons[code],
	})
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Header: http.Header{
			"Content-Type": []string{"application/json"},
		},
		Body: io.NopCloser(bytes.NewReader(data)), Request: r,
	}
}

// reasons are the reasons of the API server by HTTP status.
var reasons = map[int]string{
	403: "Forbidden", 404: "NotFound", 409: "Conflict", 422: "Invalid", 429: "TooManyRequests", 500: "InternalError",
}

func pop(list *[]any) (first any) {
	if len(*list) > 0 {
		first, *list = (*list)[0], (*list)[1:]
	}
	return first
}

// hideCreation drops the event of the next creation.
func (l *replayConnection) hideCreation() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hiddenCreations++
}

// isVisible returns whether an event is passed on.
func (l *replayConnection) isVisible(text []byte) bool {
	var event struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(text, &event)
	l.mu.Lock()
	defer l.mu.Unlock()
	if event.Type != "ADDED" || l.hiddenCreations == 0 {
		return true
	}
	l.hiddenCreations--
	return false
}

// note records the version of a write.
func (l *replayConnection) note(response *http.Response) error {
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	response.Body = io.NopCloser(bytes.NewReader(data))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ownVersions[versionIn(data)] = true
	return nil
}

func versionIn(object []byte) string {
	var body struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(object, &body)
	return body.Metadata.ResourceVersion
}

// watch passes the events on, and delays those of own writes.
func (l *replayConnection) watch(body io.ReadCloser) io.ReadCloser {
	in, out := io.Pipe()
	l.mu.Lock()
	l.watches = append(l.watches, out)
	l.mu.Unlock()
	go func() {
		defer func() { _ = out.Close() }()
		reader := bufio.NewReader(body)
		for {
			text, err := reader.ReadBytes('\n')
			if err != nil {
				return
			}
			if !l.isVisible(text) {
				continue
			}
			if l.latency > 0 && l.isOwn(text) {
				time.AfterFunc(l.latency, func() { _, _ = out.Write(text) })
				continue
			}
			if _, err := out.Write(text); err != nil {
				return
			}
		}
	}()
	return readCloser{in, body}
}

func (l *replayConnection) isOwn(text []byte) bool {
	var event struct{ Object json.RawMessage }
	_ = json.Unmarshal(text, &event)
	l.writeMu.RLock()
	defer l.writeMu.RUnlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ownVersions[versionIn(event.Object)]
}

// inject sends an event with the object, as if it had just changed.
func (l *replayConnection) inject(object map[string]any) {
	if object == nil {
		return
	}
	data, _ := json.Marshal(map[string]any{"type": "MODIFIED", "object": object})
	l.mu.Lock()
	watches := l.watches
	l.mu.Unlock()
	for _, out := range watches {
		_, _ = out.Write(append(data, '\n'))
	}
}

type readCloser struct {
	io.Reader
	closer io.Closer
}

func (b readCloser) Close() error {
	_ = b.closer.Close()
	if pipe, ok := b.Reader.(io.Closer); ok {
		return pipe.Close()
	}
	return nil
}
