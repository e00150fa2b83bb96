package transport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/transport"
)

func responsesWithStatus(status int) []any { return []any{map[string]any{"status": int64(status)}} }

// TestTheEndOfTheContextEndsTheAttempts shows that the end of the context returns the last response.
func TestTheEndOfTheContextEndsTheAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		s := &server{responses: responsesWithStatus(500), startTime: time.Now()}
		request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://api/one", nil)
		response, err := transport.RequestRetries{
			Backoffs: []time.Duration{time.Minute, time.Minute},
		}.WrapRoundTrip(s.RoundTrip)(request)
		if err != nil || response.StatusCode != http.StatusInternalServerError || len(s.attempts) != 2 ||
			time.Since(s.startTime) != 90*time.Second {
			t.Errorf(
				"want the last response after the context ended: %v, error %v, after %v, in attempts at %v",
				response, err,
				time.Since(s.startTime), s.attempts,
			)
			return
		}
		_ = response.Body.Close()
	})
}

// TestWhatCannotBeSentAgainIsNot shows that a request is not repeated if its body cannot be read again.
func TestWhatCannotBeSentAgainIsNot(t *testing.T) {
	s := &server{responses: responsesWithStatus(500), startTime: time.Now()}
	request, _ := http.NewRequestWithContext(
		t.Context(), http.MethodPost, "http://api/one", io.NopCloser(strings.NewReader("a stream")),
	)
	response, err := transport.RequestRetries{Backoffs: []time.Duration{time.Hour}}.WrapRoundTrip(s.RoundTrip)(request)
	if err != nil || response.StatusCode != http.StatusInternalServerError || len(s.attempts) != 1 {
		t.Errorf("a request without GetBody was repeated: %v, error %v, %d attempts", response, err, len(s.attempts))
		return
	}
	_ = response.Body.Close()
}

// TestAnErrorOfTheBodyIsTold shows that an error of reading the body again is returned.
func TestAnErrorOfTheBodyIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		s := &server{responses: responsesWithStatus(503), startTime: time.Now()}
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://api/one", strings.NewReader("x"))
		request.GetBody = func() (io.ReadCloser, error) { return nil, broken }
		retries := transport.RequestRetries{Backoffs: []time.Duration{time.Second}}
		response, err := retries.WrapRoundTrip(s.RoundTrip)(request)
		if !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		if response != nil {
			_ = response.Body.Close()
		}
	})
}

// TestOneAttempt shows that a connection without further attempts returns the response unchanged.
func TestOneAttempt(t *testing.T) {
	s := &server{
		responses: []any{map[string]any{"status": int64(429), "headers": map[string]any{"Retry-After": "1"}}},
		startTime: time.Now(),
	}
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://api/one", nil)
	response, err := transport.RequestRetries{}.WrapRoundTrip(s.RoundTrip)(request)
	if err != nil || len(s.attempts) != 1 || response.Header.Get("Retry-After") != "1" {
		t.Errorf("got %v, error %v, %d attempts", response, err, len(s.attempts))
		return
	}
	_ = response.Body.Close()
}

// TestTheAttemptsAreAllThereAre shows that the client does not repeat a request on its own after all attempts have
// failed.
func TestTheAttemptsAreAllThereAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		next := sending(func(*http.Request) (*http.Response, error) { attempts++; return nil, syscall.ECONNRESET })
		d, err := discovery.NewDiscoveryClientForConfigAndClient(&rest.Config{Host: "http://x", QPS: -1},
			&http.Client{Transport: transport.RequestRetries{
				Backoffs: []time.Duration{time.Second, time.Second}}.WrapRoundTrip(next)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.RESTClient().Get().AbsPath("/x").DoRaw(t.Context()); err == nil || attempts != 3 {
			t.Errorf("%d attempts, error %v", attempts, err)
		}
	})
}

// TestWhatAServerMayAskFor shows that a requested delay is limited, and that invalid ones lead to the backoff.
func TestWhatAServerMayAskFor(t *testing.T) {
	for wish, want := range map[string]time.Duration{
		"NaN": time.Second, "1e300": 10 * time.Minute, "99999999999": 10 * time.Minute, "-5": time.Second,
		"7": 7 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{
				responses: []any{
					map[string]any{"status": int64(429), "headers": map[string]any{"Retry-After": wish}},
					map[string]any{"status": int64(200)},
				},
				startTime: time.Now(),
			}
			request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://api/one", nil)
			attempts := transport.RequestRetries{Backoffs: []time.Duration{time.Second}}
			response, err := attempts.WrapRoundTrip(s.RoundTrip)(request)
			if took := time.Since(s.startTime); err != nil || took != want {
				t.Errorf("%s: waited for %s, want %s, error %v", wish, took, want, err)
				return
			}
			_ = response.Body.Close()
		})
	}
}

// TestTheLastAnswerAsksForNothing shows that the last response loses its Retry-After, or the client would start again.
func TestTheLastAnswerAsksForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{
			responses: []any{map[string]any{"status": int64(429), "headers": map[string]any{"Retry-After": "1"}}},
			startTime: time.Now(),
		}
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://api/one", nil)
		retries := transport.RequestRetries{Backoffs: []time.Duration{time.Second}}
		response, err := retries.WrapRoundTrip(s.RoundTrip)(request)
		if err != nil || response.Header.Get("Retry-After") != "" {
			t.Errorf("got %v, error %v", response, err)
			return
		}
		_ = response.Body.Close()
	})
}

// TestObeying shows that an obeying connection waits as long as the server requests, even not at all. Without a request
// the backoff counts.
func TestObeying(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, header, body string
		want                 time.Duration
	}{
		"AtOnce":    {"a header of zero leads to no delay", "0", "", 0},
		"InTheBody": {"a delay in the body is obeyed", "", `{"details":{"retryAfterSeconds":5}}`, 5 * time.Second},
		"NoWord":    {"details without a delay lead to the backoff", "", `{"details":{}}`, time.Minute},
		"NoDetails": {"a body without details leads to the backoff", "", `{"kind":"Status"}`, time.Minute},
		"NoJSON":    {"a body that is not JSON leads to the backoff", "", `busy`, time.Minute},
		"AskedTwice": {"the header takes precedence over the body",
			"7", `{"details":{"retryAfterSeconds":5}}`, 7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, attempts, lines := time.Now(), 0, ""
				next := sending(func(*http.Request) (*http.Response, error) {
					if attempts++; attempts > 2 {
						return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
					}
					header := http.Header{}
					if tc.header != "" {
						header.Set("Retry-After", tc.header)
					}
					return &http.Response{
						StatusCode: http.StatusTooManyRequests, Header: header,
						Body: io.NopCloser(strings.NewReader(tc.body)),
					}, nil
				})
				log := funcr.New(func(_, line string) { lines += line }, funcr.Options{})
				request, _ := http.NewRequestWithContext(
					logf.IntoContext(t.Context(), log), http.MethodGet, "http://api/one", nil,
				)
				repeat := transport.RequestRetries{Backoffs: []time.Duration{time.Minute, time.Minute},
					EnforceRetryAfter: true}
				response, err := repeat.WrapRoundTrip(next)(request)
				if took := time.Since(began); err != nil || took != 2*tc.want {
					t.Fatalf("%s: waited for %v, want %v twice; error %v", tc.reason, took, tc.want, err)
				}
				_ = response.Body.Close()
				for _, attempt := range []string{`"attempt"=1 `, `"attempt"=2 `} {
					if !strings.Contains(lines, attempt) {
						t.Errorf("want %q in the log, got %s", attempt, lines)
					}
				}
			})
		})
	}
}
