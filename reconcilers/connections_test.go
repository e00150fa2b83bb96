package reconcilers_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// watched counts the watches that are open on a resource, or on all of them.
type watched struct {
	http.RoundTripper
	plural string
	open   atomic.Int64
}

func (w *watched) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := w.RoundTripper.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusOK && r.URL.Query().Get("watch") != "" &&
		(w.plural == "" || strings.HasSuffix(r.URL.Path, "/"+w.plural)) {
		w.open.Add(1)
		response.Body = &closing{ReadCloser: response.Body, closed: func() { w.open.Add(-1) }}
	}
	return response, err
}

// closing tells when the body is closed for the first time.
type closing struct {
	io.ReadCloser
	closed func()
	done   atomic.Bool
}

func (c *closing) Close() error {
	if !c.done.Swap(true) {
		c.closed()
	}
	return c.ReadCloser.Close()
}

// held is a connection on which the lists and watches of one resource take a while, or are forbidden.
type held struct {
	http.RoundTripper
	plural    string
	pause     time.Duration
	forbidden bool
}

func (h held) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/"+h.plural) && r.Method == http.MethodGet {
		if h.forbidden {
			return &http.Response{
				StatusCode: http.StatusForbidden, Header: http.Header{}, Body: http.NoBody, Request: r,
			}, nil
		}
		select {
		case <-r.Context().Done():
			return nil, r.Context().Err()
		case <-time.After(h.pause):
		}
	}
	return h.RoundTripper.RoundTrip(r)
}

// unavailable: things cannot be listed while served, as their conversion webhook is down: each request takes a minute,
// then 500.
type unavailable struct{ http.RoundTripper }

func (u unavailable) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/things") {
		return &http.Response{
			StatusCode: http.StatusInternalServerError, Header: http.Header{}, Body: http.NoBody, Request: r,
		}, nil
	}
	return u.RoundTripper.RoundTrip(r)
}

// lagging delays lists and watches of one resource by what is set.
type lagging struct {
	http.RoundTripper
	plural string
	lag    *atomic.Int64
}

func (l lagging) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/"+l.plural) && r.Method == http.MethodGet {
		select {
		case <-r.Context().Done():
			return nil, r.Context().Err()
		case <-time.After(time.Duration(l.lag.Load())):
		}
	}
	return l.RoundTripper.RoundTrip(r)
}

// failing answers 500 to some requests.
type failing struct {
	http.RoundTripper
	refuse func(r *http.Request, body string) int
}

func (f failing) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPatch {
		data, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(data)))
		if code := f.refuse(r, string(data)); code != 0 {
			return &http.Response{StatusCode: code, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
		}
	}
	return f.RoundTripper.RoundTrip(r)
}
