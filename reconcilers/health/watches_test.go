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

// answering answers each request with a body that lasts until it is closed.
type answering struct {
	code int
	err  error
}

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	if a.err != nil {
		return nil, a.err
	}
	return &http.Response{StatusCode: a.code, Body: io.NopCloser(strings.NewReader(""))}, nil
}

// request makes one for the scope, and gives what ends it.
func request(t *testing.T, h *health.Health, scope, query string, answer answering) (end func()) {
	t.Helper()
	client := &http.Client{Transport: h.Scope(scope).Around(answer.RoundTrip)}
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
		limits health.Limits
		query  string
		answer answering
		open   time.Duration // before it is ended
		ended  time.Duration
		want   []string
	}{
		"Open": {"it may be silent, which others look at",
			health.Limits{}, watching, answering{code: open}, 24 * time.Hour, 0, nil},
		"Ended": {"there is time for another one",
			health.Limits{}, watching, answering{code: open}, time.Hour, 69 * time.Second, nil},
		"Over": {"nobody has renewed it",
			health.Limits{}, watching, answering{code: open}, time.Hour, 70 * time.Second,
			[]string{"watches: a: not watched for 1m10s"}},
		"Own": {"the limit is a setting",
			health.Limits{Silence: minute}, watching, answering{code: open}, time.Hour, minute,
			[]string{"watches: a: not watched for 1m0s"}},
		"Never": {"whoever may be silent has to be there",
			health.Limits{Silence: -1}, watching, answering{code: open}, time.Hour, minute, nil},
		"List": {"a list is no watch",
			health.Limits{}, "", answering{code: open}, time.Hour, 0, []string{"watches: a: not watched for 1h0m0s"}},
		"Gone": {"a watch that is refused is none",
			health.Limits{}, watching, answering{code: http.StatusGone}, time.Hour, 0,
			[]string{"watches: a: not watched for 1h0m0s"}},
		"Failed": {"nor is one that never came",
			health.Limits{}, watching, answering{err: io.EOF}, time.Hour, 0,
			[]string{"watches: a: not watched for 1h0m0s"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := serving(t.Context(), "a")
				h.Limit(tc.limits)
				h.Scope("a").Synced()
				end := request(t, h, "a", tc.query, tc.answer)
				if time.Sleep(tc.open); tc.ended > 0 {
					end()
					time.Sleep(tc.ended)
				}
				want(t, tc.reason, h.Ready(), tc.want...)
				want(t, "a restart would not help", h.Alive())
			})
		})
	}
}

// A watch begins before the one before it is over: it counts when none is left.
func TestOverlappingWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := serving(t.Context(), "a")
		h.Scope("a").Synced()
		first := request(t, h, "a", "watch=true", answering{code: http.StatusOK})
		second := request(t, h, "a", "watch=true", answering{code: http.StatusOK})
		first()
		time.Sleep(time.Hour)
		want(t, "the second one is open", h.Ready())
		second()
		h.Scope("a").Failed(errors.New("connection refused"))
		time.Sleep(minute)
		want(t, "there is time for a third one", h.Ready())
		time.Sleep(minute)
		want(t, "the reason is told", h.Ready(), "watches: a: not watched for 2m0s: connection refused")
		h.Scope("a").Begin()
		want(t, "it starts anew: that is a matter of its list", h.Ready(), "caches: a: not listed yet")
	})
}

// Who is not listed yet, or may not be, is waited for elsewhere, or not at all.
func TestOnlyWhatIsListedIsWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := serving(t.Context(), "a", "b")
		h.Scope("a").Synced()
		h.Scope("a").Begin()
		h.Scope("b").Synced()
		h.Scope("b").Refuse()
		time.Sleep(time.Hour)
		want(t, "one is listed anew, and one is refused", h.Ready(), "caches: a: not listed yet")
	})
}

// What is heard counts, not what is granted; nobody listens in a pause.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var none *health.Scope
		if _, watched := none.Silence(); watched {
			t.Error("nobody is silent")
		}
		s := serving(t.Context(), "a").Scope("a")
		silent := func(reason string, want time.Duration, watched bool) {
			t.Helper()
			if got, is := s.Silence(); is != watched || is && got != want {
				t.Errorf("%s: silent for %s, watched: %t", reason, got, is)
			}
		}
		silent("its controller has not begun", 0, false)
		s.Begin()
		time.Sleep(minute)
		silent("no list has come", minute, true)
		s.Synced()
		time.Sleep(minute)
		in, out := io.Pipe()
		send := s.Around(func(*http.Request) (*http.Response, error) {
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
		silent("a watch is granted", minute, true)
		go func() { _, _ = io.WriteString(out, "x") }()
		if _, err := io.ReadFull(response.Body, make([]byte, 1)); err != nil {
			t.Error(err)
		}
		silent("it has told something", 0, true)
		time.Sleep(minute)
		_ = out.Close()
		if rest, err := io.ReadAll(response.Body); len(rest) > 0 || err != nil {
			t.Errorf("the rest is %q, error %v", rest, err)
		}
		_ = response.Body.Close()
		silent("it has ended, which tells nothing", minute, true)
		s.Refuse()
		silent("it is not served", 0, false)
		s.Begin()
		s.End()
		silent("its controller has ended", 0, false)
	})
}
