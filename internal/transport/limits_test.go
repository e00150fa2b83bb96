package transport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/transport"
)

// sending is a function that acts as a connection.
type sending = transport.RoundTripFunc

// withLimits returns a connection with limits.
func withLimits(next http.RoundTripper, limits transport.RequestLimits) http.RoundTripper {
	return limits.WrapRoundTrip(next.RoundTrip)
}

// ofWatches returns limits with the default timeout of requests.
func ofWatches(limits transport.WatchLimits) transport.RequestLimits {
	return transport.RequestLimits{WatchLimits: limits}
}

// neverAnswer is a server that never answers.
func neverAnswer(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// neverComplete is a server that begins a response and never completes it.
func neverComplete(r *http.Request) (*http.Response, error) {
	in, out := io.Pipe()
	go func() {
		_, _ = io.WriteString(out, "{")
		<-r.Context().Done()
		_ = out.CloseWithError(r.Context().Err())
	}()
	return &http.Response{StatusCode: http.StatusOK, Body: in}, nil
}

func readResponse(ctx context.Context, t *testing.T, way http.RoundTripper, url string) (string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := way.RoundTrip(request)
	if err != nil {
		return "", err
	}
	data, err := io.ReadAll(response.Body)
	return string(data), errors.Join(err, response.Body.Close())
}

// TestRequestsAreLimited shows the limit for a whole request, which does not replace the caller's.
func TestRequestsAreLimited(t *testing.T) {
	tests := map[string]struct {
		reason        string
		server        sending
		limit         time.Duration
		callerTimeout time.Duration // the limit of the caller
		wantDuration  time.Duration
		want          string
	}{
		"NoAnswer": {"a request without an answer ends at the limit",
			neverAnswer, time.Minute, 0, time.Minute, "within 1m0s"},
		"HalfOfIt": {"a response that is never completed ends at the limit",
			neverComplete, time.Minute, 0, time.Minute, "within 1m0s"},
		"Default": {"the default limit is five minutes", neverAnswer, 0, 0, 5 * time.Minute, "within 5m0s"},
		"NoLimit": {"a negative limit disables it", neverAnswer, -1, time.Hour, time.Hour, "deadline"},
		"NotOurEnd": {"the end of the caller's context is not attributed to the limit",
			neverComplete, time.Minute, time.Second, time.Second, "deadline"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				if tc.callerTimeout > 0 {
					ctx, cancel = context.WithTimeout(t.Context(), tc.callerTimeout)
				}
				defer cancel()
				began := time.Now()
				_, err := readResponse(ctx, t, withLimits(tc.server, transport.RequestLimits{RequestTimeout: tc.limit}),
					"http://api/api/v1/pods")
				if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%s: %v", tc.reason, err)
				}
				const blame = "within"
				if strings.Contains(err.Error(), blame) != strings.Contains(tc.want, blame) {
					t.Errorf("%s: unexpected mention of the limit: %v", tc.reason, err)
				}
				if took := time.Since(began); took != tc.wantDuration {
					t.Errorf("%s: took %s, want %s", tc.reason, took, tc.wantDuration)
				}
			})
		})
	}
}

// TestAnswersInTimeAreWhole shows that a slow response within the limit is complete.
func TestAnswersInTimeAreWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := sending(func(*http.Request) (*http.Response, error) {
			in, out := io.Pipe()
			go func() {
				for range 3 {
					time.Sleep(15 * time.Second)
					_, _ = io.WriteString(out, "x")
				}
				_ = out.Close()
			}()
			return &http.Response{StatusCode: http.StatusOK, Body: in}, nil
		})
		got, err := readResponse(t.Context(), t, withLimits(slow, transport.RequestLimits{RequestTimeout: time.Minute}),
			"http://api/api/v1/pods")
		if err != nil || got != "xxx" {
			t.Errorf("got %q, error %v", got, err)
		}
	})
}

// TestWhatComesLateIsAnAnswer shows that a response that the connection delivers after the limit is still returned.
func TestWhatComesLateIsAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := sending(func(*http.Request) (*http.Response, error) {
			in, out := io.Pipe()
			go func() {
				time.Sleep(2 * time.Minute)
				_, _ = io.WriteString(out, "x")
				_ = out.Close()
			}()
			return &http.Response{StatusCode: http.StatusOK, Body: in}, nil
		})
		got, err := readResponse(t.Context(), t, withLimits(late, transport.RequestLimits{RequestTimeout: time.Minute}),
			"http://api/api/v1/pods")
		if err != nil || got != "x" {
			t.Errorf("got %q, error %v", got, err)
		}
	})
}
