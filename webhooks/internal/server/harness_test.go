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

// reviewer is a test double that allows each valid JSON and records the requests.
type reviewer struct {
	mu       sync.Mutex
	requests []review.EndpointRequest
	// err is returned instead of an answer; panics is the value of a panic.
	err        error
	panicValue any
	// hasDeadline is whether the context had a deadline.
	hasDeadline bool
}

func (r *reviewer) Review(ctx context.Context, request review.EndpointRequest) (review.Response, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, request)
	_, r.hasDeadline = ctx.Deadline()
	if r.panicValue != nil {
		panic(r.panicValue)
	}
	if r.err == nil && !json.Valid(request.Body) {
		return review.Response{}, unanswered(http.StatusBadRequest)
	}
	return review.Response{Response: review.ObjectVerdict{Allowed: true}}, r.err
}

// last returns the last request.
func (r *reviewer) last(t *testing.T) review.EndpointRequest {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.requests) == 0 {
		t.Fatal("the server has not requested a review")
	}
	return r.requests[len(r.requests)-1]
}

// failure is an error of a review with its own text.
type failure struct{ responseErr *review.ResponseError }

func (f failure) Error() string { return "the review fails" }

func (f failure) Unwrap() error { return f.responseErr }

func unanswered(status int) error { return failure{&review.ResponseError{Status: status}} }

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

// answer is the answer of the server to a client.
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
