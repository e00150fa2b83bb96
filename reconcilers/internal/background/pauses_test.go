package background_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/background"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
)

// gate can be closed before handlers are stopped, and counts the running attempts.
type gate struct {
	closed atomic.Bool
	inside atomic.Int32
}

func (g *gate) Open() bool { return !g.closed.Load() }

func (g *gate) Enter() bool {
	if g.Open() {
		g.inside.Add(1)
		return true
	}
	return false
}

func (g *gate) Leave() { g.inside.Add(-1) }

// TestNothingBeginsInAPause shows that no attempt begins in a pause, whether or not the handler was stopped.
func TestNothingBeginsInAPause(t *testing.T) {
	daemon, tick := handlers.BackgroundOptions{Daemon: true}, handlers.BackgroundOptions{Interval: 5 * second}
	late := daemon
	late.InitialDelay = after(10*second, nil)
	fail := func(context.Context, *handlers.Invocation) error { return errors.New("bad") }
	for name, tc := range map[string]struct {
		reason     string
		background handlers.BackgroundOptions
		pause      time.Duration
		act        handlers.Func
		want       []string
	}{
		"Daemon": {"a daemon does not start in a pause", daemon, 0, fail, []string{"0s look"}},
		"LateOne": {"a daemon whose initial delay ends in the pause does not start", late, second, fail,
			[]string{"10s look"}},
		"Retry": {"a retry that becomes due in the pause is not made", daemon, second, fail,
			[]string{"0s call 0", "7s look"}},
		"Timer": {"the first tick of a timer is not made in a pause", tick, 0, fail, []string{"0s look"}},
		"TimersEnd": {"the next tick of a timer is not made in a pause", tick, second, succeed,
			[]string{"0s call 0", "5s look"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &gate{}
				var w *harness
				w = newHarnessWith(t, background.KindSettings{HandledKind: kind.HandledKind{Gate: g}},
					backgroundHandler(&w, tc.background, tc.act))
				if tc.pause == 0 {
					g.closed.Store(true)
				}
				w.runPass()
				time.Sleep(tc.pause)
				synctest.Wait()
				g.closed.Store(true)
				w.want(minute, tc.want...)
				if n := g.inside.Load(); n != 0 {
					t.Errorf("%s: %d handlers still count as running", tc.reason, n)
				}
			})
		})
	}
}

// after returns an initial delay.
func after(delay time.Duration, err error) func(map[string]any) (time.Duration, error) {
	return func(map[string]any) (time.Duration, error) { return delay, err }
}

// TestStoppedWhileItWaits shows that a daemon that is stopped before its first call, or between two calls, is not
// called any more.
func TestStoppedWhileItWaits(t *testing.T) {
	fail := func(context.Context, *handlers.Invocation) error { return errors.New("bad") }
	for name, tc := range map[string]struct {
		reason string
		delay  time.Duration
		want   []string
	}{
		"Delay": {"an exit does not wait for the initial delay", 10 * second, nil},
		"Retry": {"an exit does not wait for the delay of a retry", 0, []string{"0s call 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w *harness
				w = newHarness(t, backgroundHandler(
					&w, handlers.BackgroundOptions{Daemon: true, InitialDelay: after(tc.delay, nil)}, fail,
				))
				w.runPass()
				w.until(second)
				w.StopAndWait(background.Exiting)
				if at := time.Since(w.startTime); at != second {
					t.Errorf("%s: the exit ended at %s", tc.reason, at)
				}
				w.want(minute, tc.want...)
			})
		})
	}
}

// TestPermissionEnds shows that handlers are cancelled at once when the permission to write ends, because their results
// could not be saved.
func TestPermissionEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		before background.StopReason
		want   []string
	}{
		"Running": {
			"without permission, the backoff of a daemon is skipped", 0,
			[]string{
				"1s asked OPERATOR_PAUSING,DAEMON_CANCELLED", "1s cancelled OPERATOR_PAUSING,DAEMON_CANCELLED",
				"6s abandoned", "6s look",
			},
		},
		"Pausing": {
			"without permission, the backoff of a daemon in a pause is skipped, too", background.Pausing,
			[]string{
				"0s asked OPERATOR_PAUSING", "1s cancelled OPERATOR_PAUSING,DAEMON_SIGNALLED,DAEMON_CANCELLED",
				"6s abandoned",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				permission, end := context.WithCancel(t.Context())
				defer end()
				w := newStubbornHarness(
					t, background.KindSettings{Permission: permission},
					handlers.BackgroundOptions{Daemon: true, CancelBackoff: minute},
				)
				synctest.Wait()
				if tc.before != 0 {
					w.StopAll(tc.before)
				}
				w.until(second)
				end()
				w.want(2*minute, append([]string{"0s call 0"}, tc.want...)...)
			})
		})
	}
}

// TestPermissionEndsAfterTheHandler shows that the end of the permission does not stop a handler that has returned
// before.
func TestPermissionEndsAfterTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		permission, end := context.WithCancel(t.Context())
		defer end()
		w := newStubbornHarness(t, background.KindSettings{Permission: permission},
			handlers.BackgroundOptions{Daemon: true})
		w.letGo()
		synctest.Wait()
		end()
		w.want(minute, "0s call 0", "0s look")
		if w.runPass() {
			t.Error("a daemon that has returned must not hold the object")
		}
	})
}
