package kopf_test

import (
	"context"
	"strings"
	"testing"
	"time"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// TestDurationsWithoutUnit shows that very short durations are errors: a bare number is a duration in
// nanoseconds.
func TestDurationsWithoutUnit(t *testing.T) {
	run := func(context.Context, *kopf.Task[*Widget]) error { return nil }
	cases := map[string]struct {
		reason   string
		register func(w kopf.Selection[*Widget])
		want     string // empty if the duration is valid
	}{
		"timer": {"an interval in nanoseconds is an error",
			func(w kopf.Selection[*Widget]) { w.Timer("t", 60, run) },
			`Timer("t"): the interval 60ns: did you mean 60*time.Second?`},
		"timeout": {"a timeout in nanoseconds is an error",
			func(w kopf.Selection[*Widget]) { w.OnCreate("c", succeed, kopf.Timeout(60)) },
			`OnCreate("c"): Timeout: 60ns: did you mean 60*time.Second?`},
		"backoff": {"a backoff in nanoseconds is an error",
			func(w kopf.Selection[*Widget]) { w.OnCreate("c", succeed, kopf.Backoff(5)) },
			"Backoff: 5ns: did you mean 5*time.Second?"},
		"initial delay": {"an initial delay in nanoseconds is an error",
			func(w kopf.Selection[*Widget]) { w.Daemon("d", run, kopf.InitialDelay(time.Duration(10))) },
			"InitialDelay: 10ns: did you mean 10*time.Second?"},
		"idle": {"an idle time in nanoseconds is an error",
			func(w kopf.Selection[*Widget]) { w.Timer("t", 0, run, kopf.Idle(300)) },
			"Idle: 300ns: did you mean 300*time.Second?"},
		"cancellation": {"a cancellation timeout in nanoseconds is an error",
			func(w kopf.Selection[*Widget]) { w.Daemon("d", run, kopf.CancelTimeout(86_400)) },
			"CancelTimeout: 86.4µs: did you mean 86400*time.Second?"},
		"microseconds": {"an interval in microseconds is an error that does not suggest seconds",
			func(w kopf.Selection[*Widget]) { w.Timer("t", 500*time.Microsecond, run) },
			"the interval 500µs: the shortest duration is 1ms"},
		"nothing": {"zero is valid where it has a meaning",
			func(w kopf.Selection[*Widget]) {
				w.Timer("t", 0, run, kopf.Backoff(0), kopf.InitialDelay(time.Duration(0)))
			}, ""},
		"a millisecond": {"an interval of a millisecond is valid",
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
