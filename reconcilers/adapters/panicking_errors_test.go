package adapters_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/ptr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// nilError is an error type whose nil pointer is not a nil error.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

// evil panics with itself as the value, which fmt cannot print.
type evil struct{}

func (e evil) Error() string { panic(e) }

type evilChain struct{ error }

func (evilChain) Unwrap() error { panic("no chain") }

type evilIs struct{ error }

func (evilIs) Is(error) bool { panic("is it?") }

type evilAs struct{ error }

func (evilAs) As(any) bool { panic("as what?") }

type evilDelay struct{ error }

func (evilDelay) RetryAfter() time.Duration { panic("no idea when") }

type evilPermanent struct{ error }

func (evilPermanent) Permanent() bool { panic("no idea whether") }

type evilUndecodable struct{ error }

func (evilUndecodable) Undecodable() bool { panic("no idea what") }

// TestErrorsThatPanic shows that no error of a function ends the process: if a method of the error panics, the handler
// fails with one line in the log, and the outcome can be stored.
func TestErrorsThatPanic(t *testing.T) {
	tests := map[string]struct {
		err  error
		want string
	}{
		"Nil":         {(*nilError)(nil), "a nil *adapters_test.nilError"},
		"NilWithin":   {permanent{(*nilError)(nil)}, "text cannot be had"},
		"NilBesides":  {errors.Join(errOrdinary, (*nilError)(nil)), "boo\na nil *adapters_test.nilError"},
		"Text":        {evil{}, "a adapters_test.evil whose text cannot be had"},
		"Chain":       {evilChain{errOrdinary}, "boo"},
		"Is":          {evilIs{errOrdinary}, "boo"},
		"As":          {evilAs{errOrdinary}, "boo"},
		"Delay":       {evilDelay{errOrdinary}, "panic: no idea when"},
		"Permanent":   {evilPermanent{errOrdinary}, "panic: no idea whether"},
		"Undecodable": {evilUndecodable{errOrdinary}, "panic: no idea what"},
	}
	limits := map[string]func(l *execution.Limits){
		"":           func(*execution.Limits) {},
		" permanent": func(l *execution.Limits) { l.Mode = handlers.ErrorsPermanent },
		" ignored":   func(l *execution.Limits) { l.Mode = handlers.ErrorsIgnored },
		" last":      func(l *execution.Limits) { l.Policy.Retries = ptr.To(1) },
		" in time":   func(l *execution.Limits) { l.Policy.Timeout = ptr.To(time.Hour) },
		" timed out": func(l *execution.Limits) { l.Policy.Timeout = ptr.To(time.Second) },
	}
	for name, tc := range tests {
		for how, limit := range limits {
			t.Run(name+how, func(t *testing.T) {
				var lines []string
				log := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
				for what, fn := range map[string]handlers.Func{
					"returned": returning(tc.err),
					"panicked": func(context.Context, *handlers.Invocation) error { panic(tc.err) },
				} {
					a := attemptOf(fn)
					limit(&a.Limits)
					lines = nil
					o := attempt(
						logf.IntoContext(t.Context(), log), t,
						wholeChain(newMetrics(t, "op", prometheus.NewRegistry())), a,
					)
					err := errors.Join(o.Err, o.Ignored)
					if err == nil || what == "returned" && !strings.Contains(
						err.Error(), tc.want,
					) && !strings.Contains(err.Error(), "panic") {
						t.Errorf("%s: want %q, got %v", what, tc.want, err)
					}
					if len(lines) != 1 {
						t.Errorf("%s: want one line, got %v", what, lines)
					}
					record(t, o)
				}
			})
		}
	}
}

// record stores the outcome in an account, as a pass does.
func record(t *testing.T, o execution.Outcome) {
	t.Helper()
	none := func(string) (*progress.Record, error) { return nil, nil }
	state, err := execution.RestoreState(none, []string{"fn"}, []string{"fn"}, "create", time.Now())
	if err == nil {
		err = state.ConcludeAttempt("fn", o, time.Now())
	}
	if err != nil {
		t.Error(err)
	}
}

// sink is a logger that panics.
type sink struct {
	logr.LogSink
	panicsOnValues bool
	messages       *[]string
}

func (s sink) WithValues(...any) logr.LogSink {
	if s.panicsOnValues {
		panic("no values")
	}
	return s
}

func (s sink) Info(_ int, message string, _ ...any) { panic(message) }

func (s sink) Error(_ error, message string, _ ...any) { *s.messages = append(*s.messages, message) }

// TestAttemptsOutliveLogging shows that a logger that panics neither ends the process nor changes the outcome of the
// attempt.
func TestAttemptsOutliveLogging(t *testing.T) {
	for _, values := range []bool{false, true} {
		var told []string
		plain := funcr.New(func(string, string) {}, funcr.Options{}).GetSink()
		ctx := logf.IntoContext(t.Context(), logr.New(sink{LogSink: plain, panicsOnValues: values, messages: &told}))
		called := 0
		a := attemptOf(func(context.Context, *handlers.Invocation) error { called++; return nil })
		o := attempt(ctx, t, wholeChain(newMetrics(t, "op", prometheus.NewRegistry())), a)
		if called != 1 || !o.Final || o.Err != nil {
			t.Errorf("the function was called %d times, want 1; the outcome is %+v", called, o)
		}
		want := "Failed to log an attempt of a handler"
		if values {
			want = "" // no logger is left for the message
		}
		if got := fmt.Sprintln(told); got != "["+want+"]\n" {
			t.Errorf("values panic: %t, messages: %s", values, got)
		}
	}
}
