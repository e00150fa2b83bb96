package repeating_test

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

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/repeating"
)

func failing(status int) []any { return []any{map[string]any{"status": int64(status)}} }

func TestTheEndOfTheContextEndsTheAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		s := &server{responses: failing(500), began: time.Now()}
		request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://api/one", nil)
		response, err := (&repeating.Transport{
			Next: s, Backoffs: []time.Duration{time.Minute, time.Minute},
		}).RoundTrip(request)
		if err != nil || response.StatusCode != http.StatusInternalServerError || len(s.attempts) != 2 ||
			time.Since(s.began) != 90*time.Second {
			t.Errorf(
				"the answer so far is what there is: %v, error %v, after %v, in attempts at %v", response, err,
				time.Since(s.began), s.attempts,
			)
			return
		}
		_ = response.Body.Close()
	})
}

func TestWhatCannotBeSentAgainIsNot(t *testing.T) {
	s := &server{responses: failing(500), began: time.Now()}
	request, _ := http.NewRequestWithContext(
		t.Context(), http.MethodPost, "http://api/one", io.NopCloser(strings.NewReader("a stream")),
	)
	response, err := (&repeating.Transport{Next: s, Backoffs: []time.Duration{time.Hour}}).RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusInternalServerError || len(s.attempts) != 1 {
		t.Errorf("a body that was read is gone: %v, error %v, %d attempts", response, err, len(s.attempts))
		return
	}
	_ = response.Body.Close()
}

func TestAnErrorOfTheBodyIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		s := &server{responses: failing(503), began: time.Now()}
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://api/one", strings.NewReader("x"))
		request.GetBody = func() (io.ReadCloser, error) { return nil, broken }
		response, err := (&repeating.Transport{Next: s, Backoffs: []time.Duration{time.Second}}).RoundTrip(request)
		if !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		if response != nil {
			_ = response.Body.Close()
		}
	})
}

// Clients begin all over again after some errors, by themselves.
func TestTheAttemptsAreAllThereAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		next := sending(func(*http.Request) (*http.Response, error) { attempts++; return nil, syscall.ECONNRESET })
		d, err := discovery.NewDiscoveryClientForConfigAndClient(&rest.Config{Host: "http://x", QPS: -1},
			&http.Client{Transport: &repeating.Transport{
				Next: next, Backoffs: []time.Duration{time.Second, time.Second}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.RESTClient().Get().AbsPath("/x").DoRaw(t.Context()); err == nil || attempts != 3 {
			t.Errorf("%d attempts, error %v", attempts, err)
		}
	})
}

// sending is a function as a connection.
type sending func(*http.Request) (*http.Response, error)

func (f sending) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

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
				began: time.Now(),
			}
			request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://api/one", nil)
			response, err := (&repeating.Transport{Next: s, Backoffs: []time.Duration{time.Second}}).RoundTrip(request)
			if took := time.Since(s.began); err != nil || took != want {
				t.Errorf("%s: waited for %s, want %s, error %v", wish, took, want, err)
				return
			}
			_ = response.Body.Close()
		})
	}
}

// The client below would begin all over again otherwise.
func TestTheLastAnswerAsksForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{
			responses: []any{map[string]any{"status": int64(429), "headers": map[string]any{"Retry-After": "1"}}},
			began:     time.Now(),
		}
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://api/one", nil)
		response, err := (&repeating.Transport{Next: s, Backoffs: []time.Duration{time.Second}}).RoundTrip(request)
		if err != nil || response.Header.Get("Retry-After") != "" {
			t.Errorf("got %v, error %v", response, err)
			return
		}
		_ = response.Body.Close()
	})
}
