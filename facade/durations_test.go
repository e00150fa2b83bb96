package kopf_test

import (
	"context"
	"strings"
	"testing"
	"time"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// A bare number is a duration in Go, and one of nanoseconds.
func TestDurationsThatCannotBeMeant(t *testing.T) {
	run := func(context.Context, *kopf.Task[*Widget]) error { return nil }
	cases := map[string]struct {
		reason   string
		register func(w kopf.Selection[*Widget])
		want     string // nothing if it is right
	}{
		"timer": {"it would be called without a pause",
			func(w kopf.Selection[*Widget]) { w.Timer("t", 60, run) },
			`Timer("t"): the interval 60ns: did you mean 60*time.Second?`},
		"timeout": {"the handler would have failed before its first call",
			func(w kopf.Selection[*Widget]) { w.OnCreate("c", succeed, kopf.Timeout(60)) },
			`OnCreate("c"): Timeout: 60ns: did you mean 60*time.Second?`},
		"backoff": {"a failing handler would be called without a pause",
			func(w kopf.Selection[*Widget]) { w.OnCreate("c", succeed, kopf.Backoff(5)) },
			"Backoff: 5ns: did you mean 5*time.Second?"},
		"initial delay": {"there would be none",
			func(w kopf.Selection[*Widget]) { w.Daemon("d", run, kopf.InitialDelay(time.Duration(10))) },
			"InitialDelay: 10ns: did you mean 10*time.Second?"},
		"idle": {"every moment is idle",
			func(w kopf.Selection[*Widget]) { w.Timer("t", 0, run, kopf.Idle(300)) },
			"Idle: 300ns: did you mean 300*time.Second?"},
		"cancellation": {"the daemon would be abandoned at once",
			func(w kopf.Selection[*Widget]) { w.Daemon("d", run, kopf.CancelTimeout(86_400)) },
			"CancelTimeout: 86.4µs: did you mean 86400*time.Second?"},
		"microseconds": {"somebody has thought of a unit, so seconds are not what was meant",
			func(w kopf.Selection[*Widget]) { w.Timer("t", 500*time.Microsecond, run) },
			"the interval 500µs: the shortest duration is 1ms"},
		"nothing": {"zero is not at all where that has a meaning",
			func(w kopf.Selection[*Widget]) {
				w.Timer("t", 0, run, kopf.Backoff(0), kopf.InitialDelay(time.Duration(0)))
			}, ""},
		"a millisecond": {"it may be meant, as in tests",
			func(w kopf.Selection[*Widget]) { w.Timer("t", time.Millisecond, run) }, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org")
			tc.register(kopf.For(op, &Widget{}))
			_, err := kopf.Plan(op, newScheme(t))
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%s: got %v", tc.reason, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}
