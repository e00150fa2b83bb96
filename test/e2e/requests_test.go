package e2e_test

import (
	"net/http"
	"path"
	"strings"
	"sync"
)

// requests is an http.RoundTripper that records the operator's requests to the API server by object.
type requests struct {
	next http.RoundTripper

	mu            sync.Mutex
	writes        map[string][]string // by the object's name: "PATCH" or "PATCH status"
	refusedCounts map[string]int
	contentTypes  map[string]string // content type of the watch, by the plural of the kind
}

func newRequests() *requests {
	return &requests{writes: map[string][]string{}, refusedCounts: map[string]int{}, contentTypes: map[string]string{}}
}

// wrap has the signature of rest.Config.Wrap.
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
	// The write is counted before it is sent, so a spec that sees its effect also sees the count.
	r.mu.Lock()
	r.writes[name] = append(r.writes[name], what)
	r.mu.Unlock()
	response, err := r.next.RoundTrip(request)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil || response.StatusCode >= 400 {
		r.refusedCounts[name]++
	}
	return response, err
}

func (r *requests) read(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if err == nil && request.URL.Query().Get("watch") != "" {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.contentTypes[path.Base(request.URL.Path)] = response.Header.Get("Content-Type")
	}
	return response, err
}

// formOf returns the content type in which the kind is watched.
func (r *requests) formOf(plural string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.contentTypes[plural]
}

// of returns the writes to one object so far, in order.
func (r *requests) of(name string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.writes[name]...)
}

// refusedOf counts the rejected writes to one object.
func (r *requests) refusedOf(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refusedCounts[name]
}
