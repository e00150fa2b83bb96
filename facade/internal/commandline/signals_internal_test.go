package commandline

import (
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestSignals(t *testing.T) {
	type sent struct {
		after  time.Duration
		signal os.Signal
	}
	for name, tc := range map[string]struct {
		reason  string
		signals []sent
		exits   bool
	}{
		"One": {"one signal stops gracefully", []sent{{0, syscall.SIGTERM}}, false},
		"AtOnce": {"two signals at once count as one, as timeout and tini -g send two",
			[]sent{{0, syscall.SIGTERM}, {0, syscall.SIGTERM}}, false},
		"Soon": {"two signals within a second count as one",
			[]sent{{0, os.Interrupt}, {time.Second, os.Interrupt}}, false},
		"Later": {"a second signal after more than a second exits at once",
			[]sent{{0, os.Interrupt}, {1100 * time.Millisecond, os.Interrupt}}, true},
		"Another": {"a second signal of another kind exits at once",
			[]sent{{0, os.Interrupt}, {0, syscall.SIGTERM}}, true},
		"ThirdLate": {"a third signal over a second after the first one exits at once", []sent{
			{0, syscall.SIGTERM}, {0, syscall.SIGTERM}, {2 * time.Second, syscall.SIGTERM},
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				received, exited := make(chan os.Signal, len(tc.signals)), false
				ctx := untilSignal(received, func() { exited = true })
				synctest.Wait()
				if ctx.Err() != nil {
					t.Error("the context ends without a signal")
				}
				for _, s := range tc.signals {
					time.Sleep(s.after)
					received <- s.signal
				}
				synctest.Wait()
				if ctx.Err() == nil || exited != tc.exits {
					t.Errorf("%s: ended: %v, exited: %v, want true, %v", tc.reason, ctx.Err(), exited, tc.exits)
				}
				close(received)
			})
		})
	}
}
