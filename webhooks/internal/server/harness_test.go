package server_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/webhooks/internal/server"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
)

// reviewer is a double: it allows what is JSON, and remembers what it was asked.
type reviewer struct {
	mu    sync.Mutex
	asked []review.Request
	// err is what it ends with instead; panics what it panics with.
	err    error
	panics any
	// deadline tells whether there was one.
	deadline bool
}

func (r *reviewer) Review(ctx context.Context, request review.Request) (review.Response, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, request)
	_, r.deadline = ctx.Deadline()
	if r.panics != nil {
		panic(r.panics)
	}
	if r.err == nil && !json.Valid(request.Body) {
		return review.Response{}, unanswered(http.StatusBadRequest)
	}
	return review.Response{Response: review.Verdict{Allowed: true}}, r.err
}

// last is the request that was asked last.
func (r *reviewer) last(t *testing.T) review.Request {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.asked) == 0 {
		t.Fatal("no review was asked for")
	}
	return r.asked[len(r.asked)-1]
}

// failure is an error of a review, with a text of its own.
type failure struct{ of *review.Error }

func (f failure) Error() string { return "the review fails" }

func (f failure) Unwrap() error { return f.of }

func unanswered(status int) error { return failure{&review.Error{Status: status}} }

// serve starts a server with TLS that ends with the test.
func serve(t *testing.T, o server.Options) *httptest.Server {
	t.Helper()
	if o.Reviewer == nil {
		o.Reviewer = &reviewer{}
	}
	if o.Endpoints == nil {
		o.Endpoints = []server.Endpoint{{Path: "v", Handler: "v"}}
	}
	handler, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewTLSServer(handler)
	t.Cleanup(s.Close)
	return s
}

// answer is what a client gets.
type answer struct {
	status int
	header http.Header
	text   string
}

// post sends a review.
func post(t *testing.T, s *httptest.Server, path, body string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return send(t, s.Client(), request)
}

func send(t *testing.T, client *http.Client, request *http.Request) answer {
	t.Helper()
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(content)}
}
