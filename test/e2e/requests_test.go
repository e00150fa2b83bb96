package e2e_test

import (
	"errors"
	"net/http"
	"path"
	"strings"
	"sync"
)

// requests counts what an operator asks of the API server, by object. It is an http.RoundTripper between the two.
type requests struct {
	next http.RoundTripper
	// lose is asked about every write; one that it agrees to lose never reaches the server. Nil loses nothing.
	lose func(name, what string) bool

	mu      sync.Mutex
	writes  map[string][]string // by the object's name: "PATCH" or "PATCH status"
	refused map[string]int
	forms   map[string]string // of what is watched, by the plural of the kind: the type of the content
}

func newRequests() *requests {
	return &requests{writes: map[string][]string{}, refused: map[string]int{}, forms: map[string]string{}}
}

// wrap is for rest.Config.Wrap.
func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	r.next = next
	return r
}

func (r *requests) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodGet {
		return r.read(request)
	}
	name, what := path.Base(request.URL.Path), request.Method
	if name == "status" {
		name, what = path.Base(strings.TrimSuffix(request.URL.Path, "/status")), what+" status"
	}
	if r.lose != nil && r.lose(name, what) {
		return nil, errors.New("the connection was lost, as the test wants it")
	}
	// Counted before it is done: who sees its effect sees it counted.
	r.mu.Lock()
	r.writes[name] = append(r.writes[name], what)
	r.mu.Unlock()
	response, err := r.next.RoundTrip(request)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil || response.StatusCode >= 400 {
		r.refused[name]++
	}
	return response, err
}

func (r *requests) read(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if err == nil && request.URL.Query().Get("watch") != "" {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.forms[path.Base(request.URL.Path)] = response.Header.Get("Content-Type")
	}
	return response, err
}

// formOf is the type of the content in which the kind is watched.
func (r *requests) formOf(plural string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.forms[plural]
}

// of gives the writes to one object so far, in order.
func (r *requests) of(name string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.writes[name]...)
}

// refusedOf counts those that were refused.
func (r *requests) refusedOf(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused[name]
}
