package execution

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/panics"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// DefaultBackoff is the default delay after an ordinary error. Kopf: execution.default_backoff.
const DefaultBackoff = 60 * time.Second

// Outcome is the result of one attempt.
type Outcome struct {
	// Final is true if the handler has succeeded or failed, and is not called again for this cause.
	Final bool
	// Delay is the wait before the next attempt; nil means no wait.
	Delay *time.Duration
	// Err is the recorded error. If Final is true and Err is nil, the handler has succeeded.
	Err error
	// Ignored is the error that the handler's mode ignores: the outcome is a success, but without a result.
	Ignored error
	// Aborted is true for an attempt that does not count, for example because the operator exits. The outcome is not
	// recorded.
	Aborted bool
	// Blocked is true if the attempt was aborted because of the object: retries are useless until the object changes.
	Blocked bool
	// Wait is the child that the function, or one of its sub-handlers, waits for. The attempt does not count.
	Wait progress.Wait
	// Trace is the trace context that the next attempts join; empty if there is none.
	Trace progress.Trace
	// Subrefs are the ids of the sub-handlers that the function declared.
	Subrefs []string
	// Denial is the rejection of an admission request by the handler's error.
	Denial Denial
}

// Denial is the rejection that the error of an admission handler declares; zero for an ordinary error.
type Denial struct {
	// Status is the status of an API error; nil for other errors.
	Status *metav1.Status
	// Permanent and Temporary report the class of the error.
	Permanent, Temporary bool
}

// Limits turn errors into outcomes.
type Limits struct {
	// ID names the handler in messages.
	ID string
	// Policy is the handler's policy. Mode applies if the policy does not have one.
	Policy handlers.Policy
	Mode   handlers.ErrorsMode
	// Backoff is the operator's default; zero means DefaultBackoff, and a negative one means no delay.
	Backoff time.Duration
	// Retries is the number of attempts before this one. Runtime is the time since the first selection.
	Retries int
	Runtime time.Duration
}

// temporary is an error that requests a retry. A negative delay means no delay.
type temporary interface{ RetryAfter() time.Duration }

// permanent is an error that can forbid retries.
type permanent interface{ Permanent() bool }

// ExceededError returns the error of a handler that has reached a limit and cannot be called; nil otherwise.
func (l Limits) ExceededError() error {
	switch {
	case l.Policy.Timeout != nil && l.Runtime >= *l.Policy.Timeout:
		return l.timeoutError()
	case l.Policy.Retries != nil && l.Retries >= *l.Policy.Retries:
		return l.retriesError()
	default:
		return nil
	}
}

// OutcomeOf turns the error of a call, or nil, into an outcome. Errors are classified by their methods: RetryAfter()
// time.Duration makes an error temporary, and Permanent() bool makes it permanent, as does controller-runtime's
// terminal error. The mode decides about all other errors. The outermost class counts: a permanent error inside a
// temporary one is temporary.
func (l Limits) OutcomeOf(err error) Outcome {
	delay, isTemporary := RetryAfter(err)
	switch {
	case err == nil:
		return Outcome{Final: true}
	case IsPermanent(err):
		return Outcome{Final: true, Err: err}
	case isTemporary && ByBackoff(err):
		return l.retryOutcome(err, l.backoffDelay(), false)
	case isTemporary:
		return l.retryOutcome(err, delay, false)
	default:
		return l.judgeOrdinary(err)
	}
}

// ContainPanic calls judge, which calls methods of the user's error. If one of them panics, the panic is the failure of
// the handler.
func ContainPanic(err error, judge func(error) Outcome) (o Outcome) {
	if panicked := panics.Contain(func() error { o = judge(err); return nil }); panicked != nil {
		o = judge(panicked)
	}
	return o
}

// AdmissionOutcome turns the error of an admission handler, or nil, into an outcome. The outcome is final: requests are
// not retried.
func AdmissionOutcome(err error) Outcome {
	o := Outcome{Final: true, Err: err}
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		status := known.Status()
		o.Denial.Status = &status
	}
	o.Denial.Permanent = IsPermanent(err)
	_, o.Denial.Temporary = RetryAfter(err)
	return o
}

// PendingOutcome returns the outcome of a pending function. A wait of the function itself ends with its timeout at the
// latest.
func (l Limits) PendingOutcome(e *PendingError) Outcome {
	delay := e.Delay
	if l.Policy.Timeout != nil && !e.Wait.Until.IsZero() {
		delay = min(delay, max(*l.Policy.Timeout-l.Runtime, 0))
	}
	return Outcome{Err: e, Delay: &delay, Wait: e.Wait}
}

// judgeOrdinary applies the mode of the handler to an error that does not classify itself.
func (l Limits) judgeOrdinary(err error) Outcome {
	switch l.errorsMode() {
	case handlers.ErrorsIgnored:
		return Outcome{Final: true, Ignored: err}
	case handlers.ErrorsPermanent:
		return Outcome{Final: true, Err: err}
	default:
		return l.retryOutcome(err, l.backoffDelay(), true)
	}
}

// retryOutcome returns the outcome of an error that is retried. If the next attempt would exceed a limit, the handler
// fails now instead of after the delay. Kopf does the same.
func (l Limits) retryOutcome(err error, delay time.Duration, ordinary bool) Outcome {
	switch {
	case l.Policy.Timeout != nil && max(delay, 0) >= *l.Policy.Timeout-l.Runtime:
		return Outcome{Final: true, Err: l.willTimeOutError(err, ordinary)}
	case l.Policy.Retries != nil && l.Retries+1 >= *l.Policy.Retries:
		return Outcome{Final: true, Err: l.willExceedRetriesError(err, ordinary)}
	case delay < 0:
		return Outcome{Err: err}
	default:
		return Outcome{Err: err, Delay: &delay}
	}
}

// errorsMode returns the mode of the policy, or the default of the family.
func (l Limits) errorsMode() handlers.ErrorsMode {
	if l.Policy.Errors != handlers.ErrorsDefault {
		return l.Policy.Errors
	}
	return l.Mode
}

// backoffDelay returns the delay after an ordinary error: that of the policy, of the operator, or the default.
func (l Limits) backoffDelay() time.Duration {
	switch {
	case l.Policy.Backoff != nil:
		return *l.Policy.Backoff
	case l.Backoff == 0:
		return DefaultBackoff
	default:
		return max(l.Backoff, 0)
	}
}

// IsPermanent reports whether the error declares itself permanent. A temporary error around it allows retries again.
func IsPermanent(err error) bool {
	var temp temporary
	return isPermanent(err) && (!errors.As(err, &temp) || !wrapsPermanent(temp))
}

// RetryAfter returns the delay that the error declares, negative for no delay. It returns false if the error does not
// declare one, or is permanent.
func RetryAfter(err error) (time.Duration, bool) {
	var temp temporary
	if !errors.As(err, &temp) || IsPermanent(err) {
		return 0, false
	}
	return temp.RetryAfter(), true
}

// ByBackoff reports whether a temporary error uses the backoff of the handler instead of its own delay.
func ByBackoff(err error) bool {
	var temp temporary
	if !errors.As(err, &temp) {
		return false
	}
	lenient, ok := temp.(interface{ ByBackoff() bool })
	return ok && lenient.ByBackoff()
}

// wrapsPermanent reports whether the temporary error wraps the permanent one.
func wrapsPermanent(temp temporary) bool {
	err, ok := temp.(error)
	return ok && isPermanent(errors.Unwrap(err))
}

// isPermanent reports whether any error in the chain forbids retries.
func isPermanent(err error) bool {
	var perm permanent
	if errors.As(err, &perm) && perm.Permanent() {
		return true
	}
	return errors.Is(err, reconcile.TerminalError(nil))
}

// IsUndecodable reports whether the function cannot get the present object, for example because the object does not
// decode into the function's Go type. Retries are useless until the object changes.
func IsUndecodable(err error) bool {
	var bad interface{ Undecodable() bool }
	return errors.As(err, &bad) && bad.Undecodable()
}
