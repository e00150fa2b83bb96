package background_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/background"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
)

// gate may be closed before anybody is told to stop, and counts what it has let in.
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

// No attempt begins in a pause, whether or not the handler has been told to stop.
func TestNothingBeginsInAPause(t *testing.T) {
	daemon, tick := handlers.Background{Daemon: true}, handlers.Background{Interval: 5 * second}
	late := daemon
	late.InitialDelay = after(10*second, nil)
	fail := func(context.Context, *handlers.Invocation) error { return errors.New("bad") }
	for name, tc := range map[string]struct {
		reason     string
		background handlers.Background
		pause      time.Duration
		act        handlers.Func
		want       []string
	}{
		"Daemon":    {"it does not even start", daemon, 0, fail, []string{"0s look"}},
		"LateOne":   {"its initial delay ends in the pause", late, second, fail, []string{"10s look"}},
		"Retry":     {"so does the backoff after an error", daemon, second, fail, []string{"0s call 0", "7s look"}},
		"Timer":     {"its first tick is not made", tick, 0, fail, []string{"0s look"}},
		"TimersEnd": {"the next tick is not made", tick, second, succeed, []string{"0s call 0", "5s look"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &gate{}
				var w *world
				w = newWorldWith(t, background.Settings{Kind: kind.Kind{Gate: g}}, spawning(&w, tc.background, tc.act))
				if tc.pause == 0 {
					g.closed.Store(true)
				}
				w.attend()
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

// after is an initial delay.
func after(delay time.Duration, err error) func(map[string]any) (time.Duration, error) {
	return func(map[string]any) (time.Duration, error) { return delay, err }
}

// A daemon that is stopped before it was ever called, or between two calls, is not called.
func TestStoppedWhileItWaits(t *testing.T) {
	fail := func(context.Context, *handlers.Invocation) error { return errors.New("bad") }
	for name, tc := range map[string]struct {
		reason string
		delay  time.Duration
		want   []string
	}{
		"Delay": {"it waits for its first call", 10 * second, nil},
		"Retry": {"it waits for its second call", 0, []string{"0s call 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w *world
				w = newWorld(t, spawning(
					&w, handlers.Background{Daemon: true, InitialDelay: after(tc.delay, nil)}, fail,
				))
				w.attend()
				w.until(second)
				w.End(background.Exiting)
				if at := time.Since(w.began); at != second {
					t.Errorf("%s: its end took until %s", tc.reason, at)
				}
				w.want(minute, tc.want...)
			})
		})
	}
}

// Without the permission to write, handlers end at once: nobody would get to know what they do.
func TestPermissionEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		before background.Reason
		want   []string
	}{
		"Running": {
			"no backoff is worth anything", 0,
			[]string{
				"1s asked OPERATOR_PAUSING,DAEMON_CANCELLED", "1s cancelled OPERATOR_PAUSING,DAEMON_CANCELLED",
				"6s abandoned", "6s look",
			},
		},
		"Pausing": {
			"that of the pause is over as well", background.Pausing,
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
				w := newStubbornWorld(
					t, background.Settings{Permission: permission},
					handlers.Background{Daemon: true, CancelBackoff: minute},
				)
				synctest.Wait()
				if tc.before != 0 {
					w.Stop(tc.before)
				}
				w.until(second)
				end()
				w.want(2*minute, append([]string{"0s call 0"}, tc.want...)...)
			})
		})
	}
}

// What has ended before the end of the permission is not said to be stopped by it.
func TestPermissionEndsAfterTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		permission, end := context.WithCancel(t.Context())
		defer end()
		w := newStubbornWorld(t, background.Settings{Permission: permission}, handlers.Background{Daemon: true})
		w.letGo()
		synctest.Wait()
		end()
		w.want(minute, "0s call 0", "0s look")
		if w.attend() {
			t.Error("a daemon that has returned is done, and holds nothing")
		}
	})
}
