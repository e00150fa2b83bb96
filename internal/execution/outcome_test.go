package execution_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// raised is an error that a function returns. The methods of its variants decide how it is handled.
type raised struct{ message string }

func (e *raised) Error() string { return e.message }

type permanentError struct{ raised }

func (*permanentError) Permanent() bool { return true }

type temporaryError struct {
	raised
	delay time.Duration
	cause error
}

func (e *temporaryError) Unwrap() error             { return e.cause }
func (e *temporaryError) RetryAfter() time.Duration { return e.delay }

var errOrdinary = errors.New("boo")

// verdictless is an error whose Permanent method returns false.
type verdictless struct{ error }

func (verdictless) Permanent() bool { return false }

func temporaryAfter(delay time.Duration) error {
	return &temporaryError{raised: raised{message: "later"}, delay: delay}
}

func permanent() error { return &permanentError{raised{message: "never"}} }

// undecided is an error that is both temporary and permanent.
type undecided struct{ temporaryError }

func (undecided) Permanent() bool { return true }

// result is a comparable outcome, with the texts of the errors.
type result struct {
	Final   bool
	Delay   *time.Duration
	Err     string
	Ignored string
}

func resultOf(o execution.Outcome) result {
	text := func(err error) string {
		if err == nil {
			return ""
		}
		return err.Error()
	}
	return result{Final: o.Final, Delay: o.Delay, Err: text(o.Err), Ignored: text(o.Ignored)}
}

func TestLimitsExceeded(t *testing.T) {
	tests := map[string]struct {
		reason  string
		policy  handlers.Policy
		retries int
		runtime time.Duration
		want    string
	}{
		"RetriesUsedUp": {
			reason: "a handler with N retries is not called after N attempts", policy: handlers.Policy{
				Retries: ptr.To(2),
			}, retries: 2,
			want: "gave up after 2 attempts",
		},
		"RetriesZero": {
			reason: "a limit of zero retries forbids the first call", policy: handlers.Policy{Retries: ptr.To(0)},
			want: "gave up after 0 attempts",
		},
		"TimeoutReached": {
			reason: "a call at the exact moment of the timeout is forbidden", policy: handlers.Policy{
				Timeout: ptr.To(time.Minute),
			}, runtime: time.Minute,
			want: "timed out after 1m0s",
		},
		"TimeoutZero": {
			reason: "a timeout of zero forbids the first call", policy: handlers.Policy{
				Timeout: ptr.To(time.Duration(0)),
			},
			want: "timed out after 0s",
		},
		"Both": {
			reason: "the timeout is checked before the retries, as in Kopf", policy: handlers.Policy{
				Timeout: ptr.To(time.Second), Retries: ptr.To(1),
			},
			retries: 1, runtime: time.Second, want: "timed out after 1s",
		},
		"Unlimited": {reason: "every call is allowed without limits", retries: 1 << 20, runtime: 1 << 60},
		"LastRetry": {reason: "the second of two calls is allowed",
			policy: handlers.Policy{Retries: ptr.To(2)}, retries: 1},
		"JustInTime": {
			reason: "a call just before the timeout is allowed", policy: handlers.Policy{
				Timeout: ptr.To(time.Minute),
			},
			runtime: time.Minute - time.Microsecond,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := execution.Limits{ID: "fn", Policy: tc.policy, Retries: tc.retries,
				Runtime: tc.runtime}.ExceededError()
			got := ""
			if err != nil {
				got = err.Error()
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

func TestLimitsJudge(t *testing.T) {
	minute := time.Minute
	tests := map[string]struct {
		reason string
		limits execution.Limits
		err    error
		want   result
	}{
		"Terminal": {
			reason: "a terminal error of controller-runtime is permanent", err: reconcile.TerminalError(errOrdinary),
			want: result{Final: true, Err: "terminal error: boo"},
		},
		"PermanentInside": {
			reason: "a permanent error is permanent however deeply it is wrapped", err: fmt.Errorf(
				"a: %w", fmt.Errorf("b: %w", permanent()),
			),
			want: result{Final: true, Err: "a: b: never"},
		},
		"PermanentBeatsIgnored": {
			reason: "the errors mode does not apply to permanent errors", err: permanent(),
			limits: execution.Limits{
				Policy: handlers.Policy{Errors: handlers.ErrorsIgnored},
			}, want: result{Final: true, Err: "never"},
		},
		"PermanentBeatsTemporary": {
			reason: "a permanent error joined with a temporary one is permanent", err: errors.Join(
				temporaryAfter(time.Second), permanent(),
			),
			want: result{Final: true, Err: "later\nnever"},
		},
		"PermanentAndTemporary": {
			reason: "an error that is both temporary and permanent is permanent", err: &undecided{
				temporaryError{raised: raised{message: "both"}},
			},
			want: result{Final: true, Err: "both"},
		},
		"TemporaryInsidePermanent": {
			reason: "a permanent error that wraps a temporary one is permanent", err: errors.Join(
				reconcile.TerminalError(temporaryAfter(time.Second)),
			),
			want: result{Final: true, Err: "terminal error: later"},
		},
		"PermanentInsideTemporary": {
			reason: "a temporary error that wraps a permanent one is temporary", err: &temporaryError{
				raised: raised{message: "later"}, delay: time.Second, cause: permanent(),
			},
			want: result{Err: "later", Delay: ptr.To(time.Second)},
		},
		"TerminalInsideTemporary": {
			reason: "a temporary error that wraps a terminal one is temporary",
			err: fmt.Errorf(
				"a: %w", &temporaryError{raised: raised{message: "later"}, cause: reconcile.TerminalError(errOrdinary)},
			),
			want: result{Err: "a: later", Delay: ptr.To(time.Duration(0))},
		},
		"NotPermanent": {
			reason: "an error whose Permanent method returns false is an ordinary error", err: verdictless{errOrdinary},
			want: result{Err: "boo", Delay: &minute},
		},
		"TemporaryBeatsPermanentMode": {
			reason: "the errors mode does not apply to temporary errors", err: temporaryAfter(time.Second),
			limits: execution.Limits{Policy: handlers.Policy{Errors: handlers.ErrorsPermanent}},
			want:   result{Err: "later", Delay: ptr.To(time.Second)},
		},
		"TemporaryAtOnce": {
			reason: "a delay of zero means a retry at once", err: temporaryAfter(0),
			want: result{Err: "later", Delay: ptr.To(time.Duration(0))},
		},
		"TemporaryWithoutDelay": {
			reason: "a negative delay means no delay", err: temporaryAfter(-1), want: result{Err: "later"},
		},
		"TemporaryLate": {
			reason: "a temporary error is final if its retry would exceed the timeout",
			err:    temporaryAfter(time.Second),
			limits: execution.Limits{ID: "fn", Policy: handlers.Policy{Timeout: &minute}, Runtime: 59 * time.Second},
			want: result{
				Final: true, Err: "gave up, as the next attempt would be after the timeout of 1m0s: later",
			},
		},
		"TemporaryWithoutDelayInTime": {
			reason: "a negative delay does not exceed the timeout", err: temporaryAfter(-time.Hour),
			limits: execution.Limits{
				Policy: handlers.Policy{Timeout: &minute}, Runtime: 59 * time.Second,
			}, want: result{Err: "later"},
		},
		"LastAttempt": {
			reason: "an error at the last attempt is final", err: errOrdinary,
			limits: execution.Limits{ID: "fn", Policy: handlers.Policy{Retries: ptr.To(1)}},
			want:   result{Final: true, Err: "gave up after 1 attempt: boo"},
		},
		"Ignored": {
			reason: "an ignored error is a success that keeps the error", err: errOrdinary, limits: execution.Limits{
				Mode: handlers.ErrorsIgnored,
			},
			want: result{Final: true, Ignored: "boo"},
		},
		"PermanentMode": {
			reason: "the permanent mode makes ordinary errors final", err: errOrdinary, limits: execution.Limits{
				Mode: handlers.ErrorsPermanent,
			},
			want: result{Final: true, Err: "boo"},
		},
		"OwnModeWins": {
			reason: "the errors mode of the handler overrides that of its family", err: errOrdinary,
			limits: execution.Limits{
				Mode: handlers.ErrorsIgnored, Policy: handlers.Policy{Errors: handlers.ErrorsTemporary},
			},
			want: result{Err: "boo", Delay: &minute},
		},
		"OwnBackoffWins": {
			reason: "the backoff of the handler overrides the operator's, even if it is zero", err: errOrdinary,
			limits: execution.Limits{Backoff: time.Hour, Policy: handlers.Policy{Backoff: ptr.To(time.Duration(0))}},
			want:   result{Err: "boo", Delay: ptr.To(time.Duration(0))},
		},
		"OperatorsBackoff": {
			reason: "the backoff of the operator applies to handlers without their own",
			err:    errOrdinary, limits: execution.Limits{
				Backoff: time.Hour,
			},
			want: result{Err: "boo", Delay: ptr.To(time.Hour)},
		},
		"NoOperatorsBackoff": {
			reason: "a negative backoff of the operator means a retry at once", err: errOrdinary,
			limits: execution.Limits{Backoff: -1},
			want:   result{Err: "boo", Delay: ptr.To(time.Duration(0))},
		},
		"Success": {
			reason: "a success beyond all limits is still a success",
			limits: execution.Limits{
				Policy: handlers.Policy{Retries: ptr.To(0), Timeout: ptr.To(time.Duration(0))},
			}, want: result{Final: true},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, resultOf(tc.limits.OutcomeOf(tc.err))); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

// evilDelay is an error whose RetryAfter method panics.
type evilDelay struct{ error }

func (evilDelay) RetryAfter() time.Duration { panic("no idea when") }

// TestContain shows that a panic in a method of a user's error is an ordinary failure.
func TestContain(t *testing.T) {
	limits := execution.Limits{ID: "fn", Backoff: time.Minute}
	if got := execution.ContainPanic(errOrdinary, limits.OutcomeOf); !errors.Is(got.Err, errOrdinary) {
		t.Errorf("got %+v, want the outcome of Judge", got)
	}
	got := execution.ContainPanic(evilDelay{errOrdinary}, limits.OutcomeOf)
	if got.Final || got.Err == nil || got.Delay == nil || *got.Delay != time.Minute {
		t.Errorf("got %+v, want another attempt after the backoff", got)
	}
}

func TestLimitErrorsKeepTheirReason(t *testing.T) {
	once := execution.Limits{ID: "fn", Policy: handlers.Policy{Retries: ptr.To(1)}}
	late := execution.Limits{ID: "fn", Policy: handlers.Policy{Timeout: ptr.To(time.Second)}}
	tests := map[string]struct {
		reason string
		err    error
		target error
	}{
		"Retries": {
			reason: "the error after too many retries wraps the last error", err: once.OutcomeOf(errOrdinary).Err,
			target: execution.ErrRetries,
		},
		"Timeout": {
			reason: "the error after a timeout wraps the last error", err: late.OutcomeOf(errOrdinary).Err,
			target: execution.ErrTimeout,
		},
		"Interrupted": {
			reason: "the error of an interruption wraps the error of the function",
			err:    late.InterruptedError(errOrdinary),
			target: execution.ErrTimeout,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if !errors.Is(tc.err, errOrdinary) || !errors.Is(tc.err, tc.target) {
				t.Errorf("%s: got %T: %v", tc.reason, tc.err, tc.err)
			}
			want := execution.Outcome{Final: true, Err: tc.err}
			if d := cmp.Diff(want, execution.Limits{}.OutcomeOf(tc.err), cmpopts.EquateErrors()); d != "" {
				t.Errorf("want the error permanent when it is judged again: -want, +got:\n%s", d)
			}
		})
	}
}
