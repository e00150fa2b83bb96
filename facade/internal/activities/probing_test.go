package activities_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/activities"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
)

// probing returns a Probing of one handler, and counts the calls of that handler.
func probing(t *testing.T, policy handlers.Policy, calls *atomic.Int64, call function) *activities.Probing {
	t.Helper()
	h := acting(activities.Probe, "one", policy, func(ctx context.Context, c *handlers.Invocation) (any, error) {
		calls.Add(1)
		return call(ctx, c)
	})
	p := activities.NewProbing(logr.Discard, func() activities.ActivityHandlers {
		return activities.ActivityHandlers{Name: activities.Probe, Handlers: []*adapters.HandlerChain{h}}
	})
	t.Cleanup(p.StopProbing)
	return p
}

func TestProbingFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		p := probing(t, handlers.Policy{Errors: handlers.ErrorsPermanent}, &calls, returning(nil, errBoo))
		for range 2 {
			if results, err := p.AwaitResults(t.Context()); !errors.Is(err, errBoo) || results != nil {
				t.Errorf("got %v, error %v", results, err)
			}
		}
		if calls.Load() != 2 {
			t.Errorf("a failure must not be cached: %d calls", calls.Load())
		}
	})
}

func TestProbingHangs(t *testing.T) { // D-probe-patience
	tests := map[string]struct {
		reason string
		policy handlers.Policy
		call   function
		want   string
	}{
		"Deaf": {"a probe that ignores its context is reported as running", handlers.Policy{}, ignoreContext,
			`handler "one" has been running for 10s`},
		"Later": {"a probe that waits for its retry is reported as waiting", handlers.Policy{},
			returning(nil, retryLater{time.Minute}),
			`handler "one" waits for another attempt: later`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls atomic.Int64
				began := time.Now()
				p := probing(t, tc.policy, &calls, tc.call)
				_, err := p.AwaitResults(t.Context())
				want := "the probes are not finished after 10s: " + tc.want
				if err == nil || err.Error() != want || time.Since(began) != 10*time.Second {
					t.Errorf("%s: want %q, got %v after %s", tc.reason, want, err, time.Since(began))
				}
				began = time.Now()
				if _, err := p.AwaitResults(t.Context()); err == nil || time.Since(began) != 0 || calls.Load() != 1 {
					t.Errorf("the second request must fail at once: got %v after %s; %d calls", err, time.Since(began),
						calls.Load())
				}
				p.StopProbing()
				time.Sleep(2 * time.Hour) // until deaf has returned
			})
		})
	}
}

// TestProbingOutlivesRequests shows that a request that is cancelled does not end the probing that other requests wait
// for.
func TestProbingOutlivesRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		p := probing(t, handlers.Policy{}, &calls, func(ctx context.Context, _ *handlers.Invocation) (any, error) {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(3 * time.Second):
				return "fine", nil
			}
		})
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.AwaitResults(impatient); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if got, err := p.AwaitResults(t.Context()); err != nil || got["one"] != "fine" || calls.Load() != 1 {
			t.Errorf("got %v, error %v, %d calls", got, err, calls.Load())
		}
	})
}

func TestProbingOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		p := probing(t, handlers.Policy{Retries: ptr.To(5)}, &calls, func(
			_ context.Context, c *handlers.Invocation,
		) (any, error) {
			if c.Retry == 0 {
				return nil, retryLater{2 * time.Second}
			}
			return calls.Load(), nil
		})
		ask := func(want int64) {
			t.Helper()
			got, err := p.AwaitResults(t.Context())
			if d := cmp.Diff(map[string]any{"one": want}, got); d != "" || err != nil {
				t.Errorf("error %v, -want, +got:\n%s", err, d)
			}
		}
		began := time.Now()
		var asking sync.WaitGroup
		for range 20 {
			asking.Go(func() { ask(2) })
		}
		asking.Wait()
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("all requests must wait for the second attempt: %s", took)
		}
		time.Sleep(activities.ProbingCache - time.Millisecond)
		ask(2)
		time.Sleep(time.Millisecond)
		ask(4)
	})
}
