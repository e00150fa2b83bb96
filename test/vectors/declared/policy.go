package declared

import (
	"math"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

var modes = map[string]handlers.ErrorsMode{
	"": handlers.ErrorsDefault, "IGNORED": handlers.ErrorsIgnored, "TEMPORARY": handlers.ErrorsTemporary,
	"PERMANENT": handlers.ErrorsPermanent,
}

// Mode is an errors mode by Kopf's name; none is the default.
func Mode(t testing.TB, name any) handlers.ErrorsMode {
	t.Helper()
	text, _ := name.(string)
	mode, ok := modes[text]
	if !ok {
		t.Fatalf("the harness does not know the errors mode %v", name)
	}
	return mode
}

// Policy is what limits and spaces the attempts.
func Policy(t testing.TB, d vectors.Fields) handlers.Policy {
	t.Helper()
	p := handlers.Policy{
		Errors: Mode(t, d["errors"]), Timeout: Seconds(t, d, "timeout"), Backoff: Seconds(t, d, "backoff"),
	}
	if retries := vectors.Number(t, d, "retries"); retries != nil {
		p.Retries = ptr.To(int(math.Ceil(*retries)))
	}
	return p
}

// Seconds is a duration in whole microseconds, as Kopf's clocks go; nil if it is absent or null.
func Seconds(t testing.TB, d vectors.Fields, key string) *time.Duration {
	t.Helper()
	number := vectors.Number(t, d, key)
	if number == nil {
		return nil
	}
	return ptr.To(time.Duration(*number * float64(time.Second)).Round(time.Microsecond))
}

func background(t testing.TB, on string, d vectors.Fields) *handlers.BackgroundOptions {
	t.Helper()
	if on != "timer" && on != "daemon" {
		return nil
	}
	b := &handlers.BackgroundOptions{
		Daemon: on == "daemon", Interval: minDuration(t, d, "interval"), Sharp: d.Flag("sharp"),
		Idle:          minDuration(t, d, "idle"),
		CancelBackoff: minDuration(t, d, "cancellation_backoff"),
		CancelTimeout: minDuration(t, d, "cancellation_timeout"),
		CancelPolling: minDuration(t, d, "cancellation_polling"),
	}
	if delay := Seconds(t, d, "initial_delay"); delay != nil {
		b.InitialDelay = func(map[string]any) (time.Duration, error) { return *delay, nil }
	}
	return b
}

// minDuration is a duration of which a zero differs from none: as there are no nulls here, it is the shortest one then.
func minDuration(t testing.TB, d vectors.Fields, key string) time.Duration {
	t.Helper()
	given := Seconds(t, d, key)
	if given == nil {
		return 0
	}
	return max(*given, time.Nanosecond)
}
