package repeating_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/repeating"
)

func failing(status int) []any { return []any{map[string]any{"status": int64(status)}} }

func TestTheEndOfTheContextEndsTheAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		s := &server{responses: failing(500), began: time.Now()}
		request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://api/one", nil)
		response, err := (&repeating.Transport{Next: s, Backoffs: []time.Duration{time.Minute, time.Minute}}).RoundTrip(request)
		if err != nil || response.StatusCode != http.StatusInternalServerError || len(s.attempts) != 2 || time.Since(s.began) != 90*time.Second {
			t.Errorf("the answer so far is what there is: %v, error %v, after %v, in attempts at %v", response, err, time.Since(s.began), s.attempts)
			return
		}
		_ = response.Body.Close()
	})
}

func TestWhatCannotBeSentAgainIsNot(t *testing.T) {
	s := &server{responses: failing(500), began: time.Now()}
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://api/one", io.NopCloser(strings.NewReader("a stream")))
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

// The client below would begin all over again otherwise.
func TestTheLastAnswerAsksForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{responses: []any{map[string]any{"status": int64(429), "headers": map[string]any{"Retry-After": "1"}}}, began: time.Now()}
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://api/one", nil)
		response, err := (&repeating.Transport{Next: s, Backoffs: []time.Duration{time.Second}}).RoundTrip(request)
		if err != nil || response.Header.Get("Retry-After") != "" {
			t.Errorf("got %v, error %v", response, err)
			return
		}
		_ = response.Body.Close()
	})
}
