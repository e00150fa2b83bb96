package background_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/background"
)

func TestFailuresInTheBackground(t *testing.T) {
	bad := errors.New("bad")
	tests := map[string]struct {
		reason string
		act    handlers.Func
	}{
		"Error": {
			"an error is retried after the backoff",
			func(context.Context, *handlers.Invocation) error { return bad },
		},
		"Panic": {"a panic is retried after the backoff",
			func(context.Context, *handlers.Invocation) error { panic(bad) }},
		"Goexit": {"a function that ends its goroutine is retried after the backoff", func(
			context.Context, *handlers.Invocation,
		) error {
			runtime.Goexit()
			return nil
		}},
	}
	for name, tc := range tests {
		for kind, b := range map[string]handlers.BackgroundOptions{"Daemon": {Daemon: true},
			"Timer": {Interval: time.Hour}} {
			want := []string{"0s call 0", "7s call 1", "7s wrote map[h:done]"}
			if b.Daemon {
				want = append(want, "7s look")
			}
			t.Run(name+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var w *harness
					w = newHarness(t, backgroundHandler(&w, b, tc.act, returnResult("done")))
					w.runPass()
					w.want(time.Minute, want...)
				})
			})
		}
	}
}

// TestBlockedInTheBackground shows that a function whose object does not decode is retried each minute, and that these
// attempts do not count.
func TestBlockedInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *harness
		undecodable := func(context.Context, *handlers.Invocation) error { return undecodable{errors.New("no number")} }
		h := backgroundHandler(&w, handlers.BackgroundOptions{Daemon: true}, undecodable, undecodable, succeed)
		h.Policy.Retries = ptr.To(1)
		w = newHarness(t, h)
		w.runPass()
		w.want(10*time.Minute, "0s call 0", "1m0s call 0", "2m0s call 0", "2m0s look")
	})
}

// undecodable is the error of a typed handler whose object does not decode.
type undecodable struct{ error }

func (undecodable) Undecodable() bool { return true }

// TestWritesInTheBackground shows that the writes of a handler are retried until they succeed, and that refused writes
// are dropped and logged.
func TestWritesInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *harness
		w = newHarness(
			t, backgroundHandler(&w, handlers.BackgroundOptions{Interval: time.Minute}, returnResult("first"),
				returnResult("second"),
				returnResult("third")),
		)
		w.writeErrors = []error{
			errors.New("no connection"), errors.New("no connection"), nil,
			fmt.Errorf("invalid: %w", patching.ErrRefused),
		}
		w.runPass()
		w.want(30*time.Second, "0s call 0", "0s refused", "1s refused", "3s wrote map[h:first]")
		w.want(time.Minute, "1m3s call 0", "1m3s refused")
		if said := strings.Join(w.logLines, "\n"); strings.Count(said, "dropping them") != 1 {
			t.Errorf("want one line about the dropped writes: %s", said)
		}
		w.want(time.Minute, "2m3s call 0", "2m3s wrote map[h:third]")
	})
}

// TestWritesInTheBackgroundObeyRetryAfter shows that a write is retried after the delay that the API server requests.
func TestWritesInTheBackgroundObeyRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *harness
		w = newHarness(t, backgroundHandler(&w, handlers.BackgroundOptions{Interval: time.Hour}, returnResult("first")))
		w.writeErrors = []error{fmt.Errorf("patching: %w", apierrors.NewTooManyRequests("busy", 40))}
		w.runPass()
		w.want(time.Minute, "0s call 0", "0s refused", "40s wrote map[h:first]")
	})
}

func TestFlushInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *harness
		w = newHarness(t, backgroundHandler(&w, handlers.BackgroundOptions{Daemon: true},
			func(ctx context.Context, call *handlers.Invocation) error {
				for n := range 2 {
					_ = call.Writer.AddTransform(func(body map[string]any) error { body["status"] = n; return nil })
					if err := call.Writer.Flush(ctx); err != nil {
						return err
					}
					w.note(fmt.Sprint("sees ", liveBody(call)["status"]))
					time.Sleep(time.Second)
				}
				return nil
			}))
		w.runPass()
		w.want(time.Minute, "0s call 0", "0s wrote 0", "0s sees 0", "1s wrote 1", "1s sees 1", "2s look")
		if w.runPass() {
			t.Error("a daemon that has returned must not hold the object")
		}
		w.want(time.Minute)
	})
}

func TestGrids(t *testing.T) {
	slow := func(takes time.Duration) handlers.Func {
		return func(context.Context, *handlers.Invocation) error { time.Sleep(takes); return nil }
	}
	tests := map[string]struct {
		background handlers.BackgroundOptions
		act        handlers.Func
		want       []string
	}{
		"Interval": {
			handlers.BackgroundOptions{Interval: 10 * time.Second}, slow(3 * time.Second),
			[]string{"0s call 0", "13s call 0", "26s call 0"},
		},
		"Sharp": {
			handlers.BackgroundOptions{Interval: 10 * time.Second, Sharp: true}, slow(3 * time.Second),
			[]string{"0s call 0", "10s call 0", "20s call 0"},
		},
		"SharpLate": {
			handlers.BackgroundOptions{Interval: 10 * time.Second, Sharp: true}, slow(13 * time.Second),
			[]string{"0s call 0", "20s call 0"},
		},
		"Once": {handlers.BackgroundOptions{}, succeed, []string{"0s call 0", "0s look"}},
		"Idle": {handlers.BackgroundOptions{Idle: 12 * time.Second}, succeed, []string{"12s call 0"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w *harness
				w = newHarness(t, backgroundHandler(&w, tc.background, tc.act))
				w.runPass()
				w.want(29*time.Second, tc.want...)
			})
		})
	}
}

func TestJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *harness
		w = newHarness(t, backgroundHandler(&w, handlers.BackgroundOptions{Interval: 10 * time.Second, Jitter: 0.5},
			succeed))
		w.runPass()
		time.Sleep(time.Hour)
		synctest.Wait()
		w.mu.Lock()
		calls := len(w.journal)
		w.mu.Unlock()
		if calls < 250 || calls > 340 { // 360 without jitter; 240 with the maximum jitter
			t.Errorf("%d calls in an hour, want 250 to 340 at intervals of 12.5 seconds on average", calls)
		}
	})
}

// TestTicksAreLimited shows that the limit postpones ticks that are due, and drops none.
func TestTicksAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := &background.Limit{Max: 2}
		running, most, done := 0, 0, 0
		var mu sync.Mutex
		for range 10 {
			limit.Go(func() {
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				running, done = running-1, done+1
				mu.Unlock()
			})
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if most != 2 || done != 10 {
			t.Errorf("%d at once, %d done after five seconds, want 2 and 10", most, done)
		}
	})
}
