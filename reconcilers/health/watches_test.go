package health_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/health"
)

// fixedResponder answers each request with a body that stays open until it is closed.
type fixedResponder struct {
	code int
	err  error
}

func (a fixedResponder) RoundTrip(*http.Request) (*http.Response, error) {
	if a.err != nil {
		return nil, a.err
	}
	return &http.Response{StatusCode: a.code, Body: io.NopCloser(strings.NewReader(""))}, nil
}

// startRequest makes a request of the scope and returns a function that ends it.
func startRequest(t *testing.T, h *health.Health, scope, query string, answer fixedResponder) (end func()) {
	t.Helper()
	client := &http.Client{Transport: h.Scope(scope).ObserveWatches(answer.RoundTrip)}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/pods?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(r) //nolint:bodyclose // the caller ends it
	if err != nil {
		return func() {}
	}
	return func() {
		if err := errors.Join(response.Body.Close(), response.Body.Close()); err != nil {
			t.Error(err)
		}
	}
}

func TestWatches(t *testing.T) {
	const open, watching = http.StatusOK, "watch=true"
	tests := map[string]struct {
		reason string
		limits health.CheckLimits
		query  string
		answer fixedResponder
		open   time.Duration // before it is ended
		ended  time.Duration
		want   []string
	}{
		"Open": {"an open watch is watched, even if it is silent",
			health.CheckLimits{}, watching, fixedResponder{code: open}, 24 * time.Hour, 0, nil},
		"Ended": {"an ended watch can be renewed within the limit",
			health.CheckLimits{}, watching, fixedResponder{code: open}, time.Hour, 69 * time.Second, nil},
		"Over": {"a watch that is not renewed within the limit is reported",
			health.CheckLimits{}, watching, fixedResponder{code: open}, time.Hour, 70 * time.Second,
			[]string{"watches: a: not watched for 1m10s"}},
		"Own": {"the limit for the renewal is a setting",
			health.CheckLimits{SilenceTimeout: minute}, watching, fixedResponder{code: open}, time.Hour, minute,
			[]string{"watches: a: not watched for 1m0s"}},
		"Never": {"a negative limit is the default limit",
			health.CheckLimits{SilenceTimeout: -1}, watching, fixedResponder{code: open}, time.Hour, minute, nil},
		"List": {"a list does not count as a watch",
			health.CheckLimits{}, "", fixedResponder{code: open}, time.Hour, 0,
			[]string{"watches: a: not watched for 1h0m0s"}},
		"Gone": {"a refused watch does not count as a watch",
			health.CheckLimits{}, watching, fixedResponder{code: http.StatusGone}, time.Hour, 0,
			[]string{"watches: a: not watched for 1h0m0s"}},
		"Failed": {"a failed watch does not count as a watch",
			health.CheckLimits{}, watching, fixedResponder{err: io.EOF}, time.Hour, 0,
			[]string{"watches: a: not watched for 1h0m0s"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newServingHealth(t.Context(), "a")
				h.SetLimits(tc.limits)
				h.Scope("a").ReportSynced()
				end := startRequest(t, h, "a", tc.query, tc.answer)
				if time.Sleep(tc.open); tc.ended > 0 {
					end()
					time.Sleep(tc.ended)
				}
				requireFailures(t, tc.reason, h.ReadyChecks(), tc.want...)
				requireFailures(t, "alive without a watch", h.AliveChecks())
			})
		})
	}
}

// TestOverlappingWatches shows that a scope is watched as long as one of its overlapping watches is open.
func TestOverlappingWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newServingHealth(t.Context(), "a")
		h.Scope("a").ReportSynced()
		first := startRequest(t, h, "a", "watch=true", fixedResponder{code: http.StatusOK})
		second := startRequest(t, h, "a", "watch=true", fixedResponder{code: http.StatusOK})
		first()
		time.Sleep(time.Hour)
		requireFailures(t, "the second watch is open", h.ReadyChecks())
		second()
		h.Scope("a").ReportFailure(errors.New("connection refused"))
		time.Sleep(minute)
		requireFailures(t, "within the limit for a third watch", h.ReadyChecks())
		time.Sleep(minute)
		requireFailures(t, "the error of the watch is reported", h.ReadyChecks(),
			"watches: a: not watched for 2m0s: connection refused")
		h.Scope("a").ReportStart()
		requireFailures(t, "a scope that starts again is reported only as not listed", h.ReadyChecks(),
			"caches: a: not listed yet")
	})
}

// TestOnlyWhatIsListedIsWatched shows that scopes without a list and refused scopes are not reported as not watched.
func TestOnlyWhatIsListedIsWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newServingHealth(t.Context(), "a", "b")
		h.Scope("a").ReportSynced()
		h.Scope("a").ReportStart()
		h.Scope("b").ReportSynced()
		h.Scope("b").ReportRefused()
		time.Sleep(time.Hour)
		requireFailures(t, "one scope is listed again, and one is refused", h.ReadyChecks(),
			"caches: a: not listed yet")
	})
}

// TestSilence shows that received data end the silence of a scope, while the start of a watch does not, and that an
// ended scope is not watched.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var none *health.WatchedScope
		if _, watched := none.SilentFor(); watched {
			t.Error("a nil scope is watched")
		}
		s := newServingHealth(t.Context(), "a").Scope("a")
		silent := func(reason string, want time.Duration, watched bool) {
			t.Helper()
			if got, is := s.SilentFor(); is != watched || is && got != want {
				t.Errorf("%s: silent for %s, watched: %t", reason, got, is)
			}
		}
		silent("before its controller begins", 0, false)
		s.ReportStart()
		time.Sleep(minute)
		silent("without a list", minute, true)
		s.ReportSynced()
		time.Sleep(minute)
		in, out := io.Pipe()
		send := s.ObserveWatches(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: in}, nil
		})
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://api/pods?watch=true", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := send(request)
		if err != nil {
			t.Fatal(err)
		}
		silent("after the start of a watch", minute, true)
		go func() { _, _ = io.WriteString(out, "x") }()
		if _, err := io.ReadFull(response.Body, make([]byte, 1)); err != nil {
			t.Error(err)
		}
		silent("after received data", 0, true)
		time.Sleep(minute)
		_ = out.Close()
		if rest, err := io.ReadAll(response.Body); len(rest) > 0 || err != nil {
			t.Errorf("the rest is %q, error %v", rest, err)
		}
		_ = response.Body.Close()
		silent("after the end of the watch without data", minute, true)
		s.ReportRefused()
		silent("after a refusal", 0, false)
		s.ReportStart()
		s.ReportEnd()
		silent("after the end of its controller", 0, false)
	})
}
