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

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// raised is what a function returns. It tells by its behaviour of what kind it is.
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

var errBoo = errors.New("boo")

// verdictless is an error with a say on permanence, which is: no.
type verdictless struct{ error }

func (verdictless) Permanent() bool { return false }

func temporaryAfter(delay time.Duration) error {
	return &temporaryError{raised: raised{message: "later"}, delay: delay}
}

func permanent() error { return &permanentError{raised{message: "never"}} }

// undecided is an error with both words at once.
type undecided struct{ temporaryError }

func (undecided) Permanent() bool { return true }

// result is an outcome as far as it can be compared: errors by their texts.
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
			reason: "retries=N allows N calls, and N were made", policy: handlers.Policy{
				Retries: ptr.To(2),
			}, retries: 2,
			want: "gave up after 2 attempts",
		},
		"RetriesZero": {
			reason: "no call at all is a limit, not the absence of one", policy: handlers.Policy{Retries: ptr.To(0)},
			want: "gave up after 0 attempts",
		},
		"TimeoutReached": {
			reason: "the very moment of the timeout is too late", policy: handlers.Policy{
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
			reason: "the timeout is looked at first, as in Kopf", policy: handlers.Policy{
				Timeout: ptr.To(time.Second), Retries: ptr.To(1),
			},
			retries: 1, runtime: time.Second, want: "timed out after 1s",
		},
		"Unlimited": {reason: "nothing is forbidden without limits", retries: 1 << 20, runtime: 1 << 60},
		"LastRetry": {reason: "one of two calls is left", policy: handlers.Policy{Retries: ptr.To(2)}, retries: 1},
		"JustInTime": {
			reason: "before the timeout, however shortly, a call is allowed", policy: handlers.Policy{
				Timeout: ptr.To(time.Minute),
			},
			runtime: time.Minute - time.Microsecond,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := execution.Limits{ID: "fn", Policy: tc.policy, Retries: tc.retries, Runtime: tc.runtime}.Exceeded()
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
			reason: "controller-runtime has a word for permanent, too", err: reconcile.TerminalError(errBoo),
			want: result{Final: true, Err: "terminal error: boo"},
		},
		"PermanentInside": {
			reason: "errors are told by behaviour, however deeply wrapped", err: fmt.Errorf(
				"a: %w", fmt.Errorf("b: %w", permanent()),
			),
			want: result{Final: true, Err: "a: b: never"},
		},
		"PermanentBeatsIgnored": {
			reason: "the mode is for ordinary errors only", err: permanent(),
			limits: execution.Limits{
				Policy: handlers.Policy{Errors: handlers.ErrorsIgnored},
			}, want: result{Final: true, Err: "never"},
		},
		"PermanentBeatsTemporary": {
			reason: "of two words side by side, the one that ends the matter counts", err: errors.Join(
				temporaryAfter(time.Second), permanent(),
			),
			want: result{Final: true, Err: "later\nnever"},
		},
		"PermanentAndTemporary": {
			reason: "of two words of one error, the one that ends the matter counts", err: &undecided{
				temporaryError{raised: raised{message: "both"}},
			},
			want: result{Final: true, Err: "both"},
		},
		"TemporaryInsidePermanent": {
			reason: "who wraps an error has the last say", err: errors.Join(
				reconcile.TerminalError(temporaryAfter(time.Second)),
			),
			want: result{Final: true, Err: "terminal error: later"},
		},
		"PermanentInsideTemporary": {
			reason: "who wraps an error has the last say", err: &temporaryError{
				raised: raised{message: "later"}, delay: time.Second, cause: permanent(),
			},
			want: result{Err: "later", Delay: ptr.To(time.Second)},
		},
		"TerminalInsideTemporary": {
			reason: "who wraps an error has the last say",
			err: fmt.Errorf(
				"a: %w", &temporaryError{raised: raised{message: "later"}, cause: reconcile.TerminalError(errBoo)},
			),
			want: result{Err: "a: later", Delay: ptr.To(time.Duration(0))},
		},
		"NotPermanent": {
			reason: "an error that may be permanent, but says it is not, is an ordinary one", err: verdictless{errBoo},
			want: result{Err: "boo", Delay: &minute},
		},
		"TemporaryBeatsPermanentMode": {
			reason: "the mode is for ordinary errors only", err: temporaryAfter(time.Second),
			limits: execution.Limits{Policy: handlers.Policy{Errors: handlers.ErrorsPermanent}},
			want:   result{Err: "later", Delay: ptr.To(time.Second)},
		},
		"TemporaryAtOnce": {
			reason: "a delay of zero is one: the handler is delayed until now", err: temporaryAfter(0),
			want: result{Err: "later", Delay: ptr.To(time.Duration(0))},
		},
		"TemporaryWithoutDelay": {
			reason: "a negative delay is none at all", err: temporaryAfter(-1), want: result{Err: "later"},
		},
		"TemporaryLate": {
			reason: "what could only be refused is not waited for", err: temporaryAfter(time.Second),
			limits: execution.Limits{ID: "fn", Policy: handlers.Policy{Timeout: &minute}, Runtime: 59 * time.Second},
			want: result{
				Final: true, Err: "gave up, as the next attempt would be after the timeout of 1m0s: later",
			},
		},
		"TemporaryWithoutDelayInTime": {
			reason: "no delay does not turn back the clock", err: temporaryAfter(-time.Hour),
			limits: execution.Limits{
				Policy: handlers.Policy{Timeout: &minute}, Runtime: 59 * time.Second,
			}, want: result{Err: "later"},
		},
		"LastAttempt": {
			reason: "after the last call, there is nothing to wait for", err: errBoo,
			limits: execution.Limits{ID: "fn", Policy: handlers.Policy{Retries: ptr.To(1)}},
			want:   result{Final: true, Err: "gave up after 1 attempt: boo"},
		},
		"Ignored": {
			reason: "a success that remembers what it was", err: errBoo, limits: execution.Limits{
				Mode: handlers.ErrorsIgnored,
			},
			want: result{Final: true, Ignored: "boo"},
		},
		"PermanentMode": {
			reason: "the mode can make every ordinary error the last", err: errBoo, limits: execution.Limits{
				Mode: handlers.ErrorsPermanent,
			},
			want: result{Final: true, Err: "boo"},
		},
		"OwnModeWins": {
			reason: "the handler's mode overrides that of its family", err: errBoo,
			limits: execution.Limits{
				Mode: handlers.ErrorsIgnored, Policy: handlers.Policy{Errors: handlers.ErrorsTemporary},
			},
			want: result{Err: "boo", Delay: &minute},
		},
		"OwnBackoffWins": {
			reason: "the handler's backoff overrides the operator's, even with zero", err: errBoo,
			limits: execution.Limits{Backoff: time.Hour, Policy: handlers.Policy{Backoff: ptr.To(time.Duration(0))}},
			want:   result{Err: "boo", Delay: ptr.To(time.Duration(0))},
		},
		"OperatorsBackoff": {
			reason: "the operator's backoff is for handlers without one", err: errBoo, limits: execution.Limits{
				Backoff: time.Hour,
			},
			want: result{Err: "boo", Delay: ptr.To(time.Hour)},
		},
		"NoOperatorsBackoff": {
			reason: "zero means the default, so there must be another way to say none", err: errBoo,
			limits: execution.Limits{Backoff: -1},
			want:   result{Err: "boo", Delay: ptr.To(time.Duration(0))},
		},
		"Success": {
			reason: "a success is one even beyond all limits: it was allowed to begin",
			limits: execution.Limits{
				Policy: handlers.Policy{Retries: ptr.To(0), Timeout: ptr.To(time.Duration(0))},
			}, want: result{Final: true},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, resultOf(tc.limits.Judge(tc.err))); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

// evilDelay panics when it is asked for its delay.
type evilDelay struct{ error }

func (evilDelay) RetryAfter() time.Duration { panic("no idea when") }

// Methods of users' errors may panic: that is a failure like others.
func TestContain(t *testing.T) {
	limits := execution.Limits{ID: "fn", Backoff: time.Minute}
	if got := execution.Contain(errBoo, limits.Judge); !errors.Is(got.Err, errBoo) {
		t.Errorf("got %+v, want the judgement", got)
	}
	got := execution.Contain(evilDelay{errBoo}, limits.Judge)
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
			reason: "the last error is what a user looks for", err: once.Judge(errBoo).Err,
			target: execution.ErrRetries,
		},
		"Timeout": {
			reason: "the last error is what a user looks for", err: late.Judge(errBoo).Err,
			target: execution.ErrTimeout,
		},
		"Interrupted": {
			reason: "a function may say what it was doing", err: late.Interrupted(errBoo),
			target: execution.ErrTimeout,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if !errors.Is(tc.err, errBoo) || !errors.Is(tc.err, tc.target) {
				t.Errorf("%s: got %T: %v", tc.reason, tc.err, tc.err)
			}
			want := execution.Outcome{Final: true, Err: tc.err}
			if d := cmp.Diff(want, execution.Limits{}.Judge(tc.err), cmpopts.EquateErrors()); d != "" {
				t.Errorf("judged again, as from an inner call, it must stay permanent: -want, +got:\n%s", d)
			}
		})
	}
}
