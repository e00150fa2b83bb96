package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/transport"
)

const watchURL = "http://api/api/v1/pods?watch=true&timeoutSeconds=400&resourceVersion=7"

// periodicServer is a server that sends a byte at each interval, and then nothing more. It records the requested
// timeouts.
type periodicServer struct {
	interval  time.Duration
	byteCount int
	endErr    error // the end of the response; nil means silence
	requests  []string
}

func (s *periodicServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.requests = append(s.requests, r.URL.Query().Get("timeoutSeconds"))
	in, out := io.Pipe()
	ctx := r.Context()
	go func() {
		for range s.byteCount {
			select {
			case <-ctx.Done():
			case <-time.After(s.interval):
				_, _ = io.WriteString(out, "x")
			}
		}
		if s.endErr == nil {
			<-ctx.Done()
			s.endErr = ctx.Err()
		}
		_ = out.CloseWithError(s.endErr)
	}()
	return &http.Response{StatusCode: http.StatusOK, Body: in}, nil
}

// TestWatchesAreLimited shows which limits end a watch, and with which error.
func TestWatchesAreLimited(t *testing.T) {
	cut := errors.New("cut")
	tests := map[string]struct {
		reason string
		server periodicServer
		limits transport.RequestLimits
		took   time.Duration
		want   string // the response, and the error after it
	}{
		"Silence": {"a silent watch ends after the inactivity timeout, without an error",
			periodicServer{interval: time.Minute, byteCount: 3},
			ofWatches(transport.WatchLimits{InactivityTimeout: 80 * time.Second}), 260 * time.Second, "xxx <nil>"},
		"SilenceByDefault": {"the default inactivity timeout exceeds the interval of bookmarks",
			periodicServer{interval: time.Minute, byteCount: 2},
			transport.RequestLimits{}, 190 * time.Second, "xx <nil>"},
		"SilenceIsFine": {"a negative inactivity timeout disables it",
			periodicServer{interval: 24 * time.Hour, byteCount: 1, endErr: io.EOF},
			ofWatches(transport.WatchLimits{InactivityTimeout: -1}), 24 * time.Hour, "x <nil>"},
		"Long": {"the timeout of the client ends a watch", periodicServer{interval: time.Minute, byteCount: 100},
			ofWatches(transport.WatchLimits{ClientTimeout: 150 * time.Second}), 150 * time.Second, "xx <nil>"},
		"Broken": {"an error of the connection is returned",
			periodicServer{interval: time.Minute, byteCount: 1, endErr: cut},
			transport.RequestLimits{}, time.Minute, "x cut"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				got, err := readResponse(t.Context(), t, withLimits(&tc.server, tc.limits), watchURL)
				took := time.Since(began)
				if line := fmt.Sprint(got, " ", err); line != tc.want || took != tc.took {
					t.Errorf("%s: want %q after %s, got %q after %s", tc.reason, tc.want, tc.took, line, took)
				}
			})
		})
	}
}

// TestServersAreAskedForATime shows that the settings override the timeout that the client requests from the server.
func TestServersAreAskedForATime(t *testing.T) {
	for limit, want := range map[time.Duration]string{
		0: "400", -1: "", time.Minute: "60", 1500 * time.Millisecond: "2", time.Nanosecond: "1",
	} {
		s := &periodicServer{endErr: io.EOF}
		limits := ofWatches(transport.WatchLimits{ServerTimeout: limit})
		if _, err := readResponse(t.Context(), t, withLimits(s, limits),
			watchURL); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(s.requests, []string{want}) {
			t.Errorf("%s: requested the timeouts %q, want %q", limit, s.requests, want)
		}
	}
}

// TestRequestsOfWatchesAreLimited shows that the request of a watch is limited, too.
func TestRequestsOfWatchesAreLimited(t *testing.T) {
	for name, limits := range map[string]transport.WatchLimits{
		"Inactivity": {InactivityTimeout: time.Minute}, "Client": {ClientTimeout: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				_, err := readResponse(t.Context(), t, withLimits(sending(neverAnswer), ofWatches(limits)), watchURL)
				if err == nil || !strings.Contains(err.Error(), "did not answer") || time.Since(began) != time.Minute {
					t.Errorf("after %s: %v", time.Since(began), err)
				}
			})
		})
	}
}

// TestSlowReaders shows that the time between reads does not count as silence of the server.
func TestSlowReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &periodicServer{interval: time.Second, byteCount: 3, endErr: io.EOF}
		way := withLimits(server, ofWatches(transport.WatchLimits{InactivityTimeout: 2 * time.Second}))
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, watchURL, nil)
		response, err := way.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		for n := range 3 {
			time.Sleep(time.Minute)
			if _, err := response.Body.Read(make([]byte, 1)); err != nil {
				t.Errorf("read %d: %v", n, err)
			}
		}
	})
}

// TestWatchesAreSpaced shows that the pause applies between watches of one resource, and not after a longer time.
func TestWatchesAreSpaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for pause, want := range map[time.Duration]time.Duration{
			0: 100 * time.Millisecond, -1: 0, 5 * time.Second: 5 * time.Second,
		} {
			limits := ofWatches(transport.WatchLimits{ReconnectBackoff: pause})
			way := withLimits(&periodicServer{endErr: io.EOF}, limits)
			another := strings.Replace(watchURL, "pods", "nodes", 1)
			for n, url := range []string{watchURL, watchURL, another, "wait", watchURL} {
				if url == "wait" {
					time.Sleep(5 * time.Second)
					continue
				}
				began := time.Now()
				if _, err := readResponse(t.Context(), t, way, url); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); n == 1 && took != want || n != 1 && took != 0 {
					t.Errorf("pause %s: watch %d began after %s", pause, n, took)
				}
			}
		}
	})
}

// TestEndDuringThePause shows that a failed watch is followed by a pause, which ends with the context.
func TestEndDuringThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusing := sending(func(*http.Request) (*http.Response, error) { return nil, io.ErrClosedPipe })
		way := withLimits(refusing, ofWatches(transport.WatchLimits{ReconnectBackoff: time.Hour}))
		if _, err := readResponse(t.Context(), t, way, watchURL); !errors.Is(err, io.ErrClosedPipe) {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := readResponse(ctx, t, way, watchURL); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the pause after a failed watch does not end with the context: %v", err)
		}
	})
}

// TestPausesOfTwoResources shows that each resource has its own pause.
func TestPausesOfTwoResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := ofWatches(transport.WatchLimits{ReconnectBackoff: time.Minute})
		way := withLimits(&periodicServer{endErr: io.EOF}, limits)
		began := time.Now()
		for _, resource := range []string{"pods", "nodes", "pods"} {
			if _, err := readResponse(t.Context(), t, way, "http://api/api/v1/"+resource+"?watch=true"); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != time.Minute {
			t.Errorf("the second watch of pods began after %s, want one minute", took)
		}
	})
}
