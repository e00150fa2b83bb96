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
		"One":     {"one signal stops gracefully", []sent{{0, syscall.SIGTERM}}, false},
		"AtOnce":  {"timeout and tini -g send two", []sent{{0, syscall.SIGTERM}, {0, syscall.SIGTERM}}, false},
		"Soon":    {"the same within a second", []sent{{0, os.Interrupt}, {time.Second, os.Interrupt}}, false},
		"Later":   {"an impatient user", []sent{{0, os.Interrupt}, {1100 * time.Millisecond, os.Interrupt}}, true},
		"Another": {"another signal is not the same one", []sent{{0, os.Interrupt}, {0, syscall.SIGTERM}}, true},
		"ThirdLate": {"the time since the first one counts", []sent{
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
