package reconcilers_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// line is the operator's connection: with a delay of the events of its own writes, and with others who write before it.
type line struct {
	next    http.RoundTripper
	latency time.Duration

	writing sync.RWMutex // while a write is made, and is not known to be our own yet

	mu            sync.Mutex
	interferences []any
	own           map[string]bool // versions that are its own
	watches       []io.Writer
}

func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPatch {
		l.interfere(r)
		l.writing.Lock()
		defer l.writing.Unlock()
	}
	response, err := l.next.RoundTrip(r)
	switch {
	case err != nil:
		return nil, err
	case r.Method == http.MethodPatch:
		return response, l.note(response)
	case r.URL.Query().Get("watch") != "" && strings.HasSuffix(r.URL.Path, "/kopfexamples"):
		response.Body = l.watch(response.Body)
	}
	return response, nil
}

// interfere lets somebody else write first.
func (l *line) interfere(r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.interferences) == 0 {
		return
	}
	data, _ := json.Marshal(l.interferences[0])
	l.interferences = l.interferences[1:]
	other := r.Clone(r.Context())
	other.Body, other.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	other.Header.Set("Content-Type", "application/merge-patch+json")
	other.URL.Path = strings.TrimSuffix(other.URL.Path, "/status")
	if response, err := l.next.RoundTrip(other); err == nil {
		_ = response.Body.Close()
	}
}

// note remembers the version that a write has made.
func (l *line) note(response *http.Response) error {
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	response.Body = io.NopCloser(bytes.NewReader(data))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.own[versionIn(data)] = true
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

// watch passes the events on, those of own writes later.
func (l *line) watch(body io.ReadCloser) io.ReadCloser {
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
			if l.latency > 0 && l.isOwn(text) {
				time.AfterFunc(l.latency, func() { _, _ = out.Write(text) })
				continue
			}
			if _, err := out.Write(text); err != nil {
				return
			}
		}
	}()
	return both{in, body}
}

func (l *line) isOwn(text []byte) bool {
	var event struct{ Object json.RawMessage }
	_ = json.Unmarshal(text, &event)
	l.writing.RLock()
	defer l.writing.RUnlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.own[versionIn(event.Object)]
}

// inject shows an object as if it had just been changed.
func (l *line) inject(object map[string]any) {
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

type both struct {
	io.Reader
	closer io.Closer
}

func (b both) Close() error {
	_ = b.closer.Close()
	if pipe, ok := b.Reader.(io.Closer); ok {
		return pipe.Close()
	}
	return nil
}
