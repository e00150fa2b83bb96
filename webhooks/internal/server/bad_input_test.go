package server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/kopf-runtime/kopf-runtime/webhooks/internal/server"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
)

// endlessBody is a body that never ends.
type endlessBody struct{}

func (endlessBody) Read(into []byte) (int, error) {
	return copy(into, bytes.Repeat([]byte(" "), len(into))), nil
}

func TestBadInput(t *testing.T) {
	double := &reviewer{}
	s := serve(t, server.Options{
		Operator: "ops", Path: "/ops", Reviewer: double,
		Endpoints: []server.Endpoint{{Path: "validate/v", Handler: "v", Type: "validating"}},
	})
	large := strings.Repeat(" ", 10<<20)
	for name, tc := range map[string]struct {
		reason, method, path string
		body                 io.Reader
		status               int
	}{
		"NoJSON": {"a body that is not JSON is an error of the review",
			http.MethodPost, "/ops/validate/v", strings.NewReader("<"), 400},
		"NoBody": {"an empty body is an error of the review", http.MethodPost, "/ops/validate/v", nil, 400},
		"NoHandler": {"an unknown handler is not found",
			http.MethodPost, "/ops/validate/w", strings.NewReader("{}"), 404},
		"Root":      {"the root of the operator is not found", http.MethodPost, "/ops", strings.NewReader("{}"), 404},
		"KopfsPath": {"the path in Kopf's format is not found", http.MethodPost, "/v", strings.NewReader("{}"), 404},
		"Elsewhere": {"the path of another operator is not found",
			http.MethodPost, "/ops2/validate/v", strings.NewReader("{}"), 404},
		"Get": {"a method other than POST is not allowed", http.MethodGet, "/ops/validate/v", nil, 405},
		"Large": {"a body with a large announced size is refused",
			http.MethodPost, "/ops/validate/v", strings.NewReader(large), 413},
		"Unmeasured": {"a body without an end is refused", http.MethodPost, "/ops/validate/v", endlessBody{}, 413},
	} {
		t.Run(name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), tc.method, s.URL+tc.path, tc.body)
			if err != nil {
				t.Fatal(err)
			}
			got := send(t, s.Client(), request)
			if got.status != tc.status || strings.TrimSpace(got.text) == "" {
				t.Errorf("%s: got %d %q, want %d with a reason", tc.reason, got.status, got.text, tc.status)
			}
			if tc.status == http.StatusMethodNotAllowed && got.header.Get("Allow") != http.MethodPost {
				t.Errorf("the answer must name the allowed method: got %q", got.header.Get("Allow"))
			}
			sendValidRequest(t, s)
		})
	}
}

// sendValidRequest sends a valid request after a bad one.
func sendValidRequest(t *testing.T, s *httptest.Server) {
	t.Helper()
	if got := post(t, s, "/ops/validate/v", "{}"); got.status != http.StatusOK {
		t.Errorf("the next request must be served: got %d %s", got.status, got.text)
	}
}

func TestSlowClient(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP1": false, "HTTP2": true} {
		t.Run(name, func(t *testing.T) {
			handler, err := server.New(server.Options{
				Path: "/ops", Reviewer: &reviewer{}, ReadTimeout: time.Second,
				Endpoints: []server.Endpoint{{Path: "validate/v", Handler: "v"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			s := httptest.NewUnstartedServer(handler)
			s.EnableHTTP2 = http2
			s.StartTLS()
			t.Cleanup(s.Close)
			body, end := io.Pipe()
			t.Cleanup(func() { _ = end.Close() })
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/ops/validate/v", body)
			if err != nil {
				t.Fatal(err)
			}
			if got := send(t, s.Client(), request); got.status != http.StatusRequestTimeout {
				t.Errorf("a request that does not arrive must time out: got %d %q", got.status, got.text)
			}
			sendValidRequest(t, s)
		})
	}
}

func TestNoTLS(t *testing.T) {
	s := serve(t, server.Options{})
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if _, err := io.WriteString(connection, "POST /v HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(connection)
	if err != nil || !strings.Contains(string(answer), " 400 ") {
		t.Errorf("a request without TLS must get a clear answer: got %q and the error %v", answer, err)
	}
	if got := post(t, s, "/v", "{}"); got.status != http.StatusOK {
		t.Errorf("the next request must be served: got %d", got.status)
	}
}

func TestPanic(t *testing.T) {
	double := &reviewer{panicValue: errors.New("broken")}
	s := serve(t, server.Options{Reviewer: double})
	got := post(t, s, "/v", "{}")
	if got.status != http.StatusInternalServerError || !strings.Contains(got.text, "broken") {
		t.Errorf("a panic must be an internal error: got %d %s", got.status, got.text)
	}
	double.panicValue, double.err = nil, errors.New("no status")
	if got := post(t, s, "/v", "{}"); got.status != http.StatusInternalServerError {
		t.Errorf("an error without a status must be an internal error: got %d", got.status)
	}
}

// TestLoggedRefusals shows that only errors of this process are logged as errors: neither those of requests, nor those
// that follow from the disconnection of a client.
func TestLoggedRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		err    error
		gone   bool
		want   int
	}{
		"Internal": {"an error of this process is logged", errors.New("broken"), false, 1},
		"Gone":     {"an error after a disconnection is a consequence of it", errors.New("broken"), true, 0},
		"Request":  {"an error of the request is for its sender", unanswered(http.StatusBadRequest), false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			lines := []string{}
			handler, err := server.New(server.Options{
				Reviewer: &reviewer{err: tc.err}, Endpoints: []server.Endpoint{{Path: "v", Handler: "v"}},
				Log: funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}),
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, disconnect := context.WithCancel(t.Context())
			defer disconnect()
			if tc.gone {
				disconnect()
			}
			handler.ServeHTTP(httptest.NewRecorder(),
				httptest.NewRequestWithContext(ctx, http.MethodPost, "/v", strings.NewReader("{}")))
			if len(lines) != tc.want {
				t.Errorf("%s: want %d lines, got %q", tc.reason, tc.want, lines)
			}
		})
	}
}

// TestMemoryOfAll shows that concurrent requests that would exceed the memory together are refused.
func TestMemoryOfAll(t *testing.T) {
	const size = 1000
	double := &blockingReviewer{started: make(chan struct{}), release: make(chan struct{})}
	s := serve(t, server.Options{MemoryLimit: size * 3 / 2, Reviewer: double})
	body := strings.Repeat(" ", size)
	first := make(chan answer)
	go func() { first <- post(t, s, "/v", body) }()
	<-double.started
	if got := post(t, s, "/v", body); got.status != http.StatusServiceUnavailable {
		t.Errorf("the second request must be refused for lack of memory: got %d %s", got.status, got.text)
	}
	double.release <- struct{}{}
	if got := <-first; got.status != http.StatusOK {
		t.Errorf("the first request must be answered: got %d %s", got.status, got.text)
	}
	go func() { <-double.started; double.release <- struct{}{} }()
	if got := post(t, s, "/v", body); got.status != http.StatusOK {
		t.Errorf("the memory must be free for the next request: got %d %s", got.status, got.text)
	}
}

// blockingReviewer is a reviewer that answers when the test allows it.
type blockingReviewer struct{ started, release chan struct{} }

func (w *blockingReviewer) Review(context.Context, review.EndpointRequest) (review.Response, error) {
	w.started <- struct{}{}
	<-w.release
	return review.Response{}, nil
}

// TestMemoryIsBounded shows that requests that are too large do not fill the memory, however many there are.
func TestMemoryIsBounded(t *testing.T) {
	const limit, clients = 1 << 20, 8
	s := serve(t, server.Options{BodyLimit: limit})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodPost, s.URL+"/v",
				io.LimitReader(endlessBody{}, 50*limit))
			if err != nil {
				t.Error(err)
				return
			}
			// Without a network: a slow client could see the closed connection before the answer.
			got := httptest.NewRecorder()
			s.Config.Handler.ServeHTTP(got, request)
			if got.Code != http.StatusRequestEntityTooLarge {
				t.Errorf("want a refusal of the large body, got %d", got.Code)
			}
		})
	}
	all.Wait()
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 25*clients*limit {
		t.Errorf("%d requests beyond the limit of %d bytes took %d bytes", clients, limit, used)
	}
}
