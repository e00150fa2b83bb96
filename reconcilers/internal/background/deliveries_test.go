package background_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/background"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
)

// TestDeliveries shows how often and how long the writes of a handler are retried, also after the handler was stopped.
func TestDeliveries(t *testing.T) {
	tick := handlers.BackgroundOptions{Interval: 10 * minute}
	for name, tc := range map[string]struct {
		reason string
		fails  int
		stops  []stop
		want   []string
		drops  bool
	}{
		"Patience": {
			"the delays between retries double, up to a minute", 8, nil,
			[]string{
				"0s refused", "1s refused", "3s refused", "7s refused", "15s refused", "31s refused", "1m3s refused",
				"2m3s refused", "3m3s wrote map[h:made]",
			}, false,
		},
		"Paused": {
			"in a pause, the delay between retries is at most 5 seconds", 6, []stop{{0, background.Pausing}},
			[]string{
				"0s refused", "1s refused", "3s refused", "7s refused", "12s refused", "17s refused",
				"22s wrote map[h:made]",
			}, false,
		},
		"PausedTooLong": {
			"when the time of the pause is over, the results are dropped", 9, []stop{{0, background.Pausing}},
			[]string{
				"0s refused", "1s refused", "3s refused", "7s refused", "12s refused", "17s refused", "22s refused",
				"25s refused",
			}, true,
		},
		"PausedLater": {
			"a pause that begins later limits the following delays, too", 6, []stop{{10 * second, background.Pausing}},
			[]string{
				"0s refused", "1s refused", "3s refused", "7s refused", "15s refused", "20s refused",
				"25s wrote map[h:made]",
			}, false,
		},
		"Unmatched": {
			"the results of a handler that stops matching are retried once, then dropped", 6,
			[]stop{{5 * second, background.Unmatched}},
			[]string{"0s refused", "1s refused", "3s refused", "5s refused", "5s look"}, true,
		},
		"Exiting": {
			"an exit ends the retries at once, even in a pause", 20,
			[]stop{{0, background.Pausing}, {9 * second, background.Exiting}},
			[]string{"0s refused", "1s refused", "3s refused", "7s refused", "9s refused"}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStoppableHarness(t, with(kind.Settings{PauseTimeout: 25 * second}), tick,
					returnResult("made"))
				s.writeErrors = slices.Repeat([]error{errors.New("no connection")}, tc.fails)
				s.runPass()
				synctest.Wait()
				for _, stop := range tc.stops {
					s.until(stop.at)
					s.stop(stop.reason)
					synctest.Wait()
				}
				s.want(5*minute, append([]string{"0s call 0"}, tc.want...)...)
				if drops := strings.Contains(strings.Join(s.logLines, "\n"), "dropping them"); drops != tc.drops {
					t.Errorf("%s: dropped: %v, want %v", tc.reason, drops, tc.drops)
				}
			})
		})
	}
}

// TestNewestState shows that a handler sees the newest known state of its object, from the cache or from a write.
func TestNewestState(t *testing.T) {
	version := func(v string) map[string]any {
		return map[string]any{"metadata": map[string]any{"uid": "u", "resourceVersion": v}}
	}
	for name, tc := range map[string]struct {
		reason  string
		answers []patching.WriteResult
		cached  map[string]any
		want    string
	}{
		"Cache": {"a cache with a newer version is used", []patching.WriteResult{{Body: version("5")}}, version("7"),
			"7"},
		"Write": {"the answer to a write is used if the cache is older", []patching.WriteResult{{Body: version("5")}},
			version("3"), "5"},
		"Gone": {"a cache without the object counts as late", []patching.WriteResult{{Body: version("5")}}, nil,
			"5"},
		"Nothing": {"without an answer, the cache is used", []patching.WriteResult{{}}, version("3"), "3"},
		"Deleted": {"an answer about a gone object is not used",
			[]patching.WriteResult{{Body: version("5"), Gone: true}},
			version("3"), "3"},
		"Released": {"an answer that released the object is not used",
			[]patching.WriteResult{{Body: version("5"), Released: true}}, version("3"), "3"},
		"Last": {
			"of two answers, the later one is used",
			[]patching.WriteResult{{Body: version("5")}, {Body: version("6")}}, version("3"), "6",
		},
		"Overtaken": {
			"an older answer does not replace a newer one",
			[]patching.WriteResult{{Body: version("6")}, {Body: version("5")}}, version("3"), "6",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w *harness
				var got string
				w = newHarness(t, backgroundHandler(&w, handlers.BackgroundOptions{Daemon: true},
					func(ctx context.Context, call *handlers.Invocation) error {
						for range tc.answers {
							_ = call.Writer.AddTransform(func(body map[string]any) error {
								body["spec"] = 1
								return nil
							})
							if err := call.Writer.Flush(ctx); err != nil {
								return err
							}
						}
						w.mu.Lock()
						w.body = tc.cached
						w.mu.Unlock()
						got = patching.ResourceVersion(liveBody(call))
						return nil
					}))
				w.answers = tc.answers
				w.runPass()
				synctest.Wait()
				if got != tc.want {
					t.Errorf("%s: got version %q, want %q", tc.reason, got, tc.want)
				}
			})
		})
	}
}

// TestAbandonedDaemonSeesItsObject shows that an abandoned daemon sees the last state of its object, without the cache.
func TestAbandonedDaemonSeesItsObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *harness
		over := make(chan struct{})
		linger := func(_ context.Context, call *handlers.Invocation) error {
			<-over
			w.note(fmt.Sprint("sees ", patching.ResourceVersion(liveBody(call))))
			return nil
		}
		w = newHarness(t, backgroundHandler(&w, handlers.BackgroundOptions{Daemon: true}, linger))
		w.runPass()
		synctest.Wait()
		w.StopAndWait(background.Exiting)
		close(over)
		w.want(minute, "0s call 0", "5.01s abandoned", "5.01s sees 1")
	})
}
