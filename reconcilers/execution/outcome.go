package execution

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// DefaultBackoff is the default delay after an ordinary error. Kopf: execution.default_backoff.
const DefaultBackoff = 60 * time.Second

// Outcome is the result of one attempt.
type Outcome struct {
	// Final is true if the handler is not called again for this cause, after a success or a failure.
	Final bool
	// Delay is how long to wait for the next attempt; nil is not at all.
	Delay *time.Duration
	// Err is the recorded error; nil is a success if Final.
	Err error
	// Ignored is the error that the handler's mode ignores: the outcome is a success, but without a result.
	Ignored error
	// Aborted is true for an attempt that does not count, such as one interrupted by the exit of the operator. Such an
	// outcome is not recorded.
	Aborted bool
	// Blocked is true if the attempt was aborted because of the object: a retry is useless until the object changes.
	Blocked bool
	// Awaited is the child that the function waits for, itself or by a sub-handler. Such an attempt does not count.
	Awaited progress.Wait
	// Trace is what the next attempts are to join; empty is none.
	Trace progress.Trace
	// Subrefs are the ids of the sub-handlers that the function declared.
	Subrefs []string
	// Denial is how the error of an admission handler denies the request.
	Denial Denial
}

// Denial is how the error of an admission handler denies the request, by its own word; zero for an ordinary error.
type Denial struct {
	// Status is that of an error of the API's kind; nil for others.
	Status *metav1.Status
	// Permanent and Temporary are true if the error is.
	Permanent, Temporary bool
}

// Limits turn errors into outcomes.
type Limits struct {
	// ID names the handler in messages.
	ID string
	// Policy is the handler's policy; Mode is for handlers whose policy has no mode.
	Policy handlers.Policy
	Mode   handlers.ErrorsMode
	// Backoff is the operator's default; zero is DefaultBackoff, a negative one is no delay.
	Backoff time.Duration
	// Retries counts the attempts before this one; Runtime is the time since the first selection.
	Retries int
	Runtime time.Duration
}

// temporary is an error that asks for a retry: a negative delay is none.
type temporary interface{ RetryAfter() time.Duration }

// permanent is an error that may forbid retries.
type permanent interface{ Permanent() bool }

// Exceeded gives the error of a handler that may not be called any more; nil if it may.
func (l Limits) Exceeded() error {
	switch {
	case l.Policy.Timeout != nil && l.Runtime >= *l.Policy.Timeout:
		return l.timedOut()
	case l.Policy.Retries != nil && l.Retries >= *l.Policy.Retries:
		return l.usedUp()
	default:
		return nil
	}
}

// Judge turns the error of a call, or nil, into an outcome. Errors are told apart by their behaviour: RetryAfter()
// time.Duration is temporary, Permanent() bool is permanent, as is controller-runtime's terminal error. All others are
// ordinary, and the mode decides. The outermost error counts: a permanent error inside a temporary one is temporary.
func (l Limits) Judge(err error) Outcome {
	delay, isTemporary := RetryAfter(err)
	switch {
	case err == nil:
		return Outcome{Final: true}
	case IsPermanent(err):
		return Outcome{Final: true, Err: err}
	case isTemporary && ByBackoff(err):
		return l.again(err, l.backoff(), false)
	case isTemporary:
		return l.again(err, delay, false)
	default:
		return l.judgeOrdinary(err)
	}
}

// Contain calls judge, which calls the methods by which a user's error classifies itself. If one of them panics, the
// panic is the failure of the handler.
func Contain(err error, judge func(error) Outcome) (o Outcome) {
	if panicked := panics.Contain(func() error { o = judge(err); return nil }); panicked != nil {
		o = judge(panicked)
	}
	return o
}

// Verdict turns the error of an admission handler, or nil, into an outcome. Such a handler is called once.
func Verdict(err error) Outcome {
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

// Await gives the outcome of a function that goes on later. If it waits for a child, it does so as long as it may.
func (l Limits) Await(e *PendingError) Outcome {
	delay := e.Delay
	if l.Policy.Timeout != nil && !e.Awaited.Until.IsZero() {
		delay = min(delay, max(*l.Policy.Timeout-l.Runtime, 0))
	}
	return Outcome{Err: e, Delay: &delay, Awaited: e.Awaited}
}

func (l Limits) judgeOrdinary(err error) Outcome {
	switch l.mode() {
	case handlers.ErrorsIgnored:
		return Outcome{Final: true, Ignored: err}
	case handlers.ErrorsPermanent:
		return Outcome{Final: true, Err: err}
	default:
		return l.again(err, l.backoff(), true)
	}
}

// again gives the outcome of an error with retries. If the next attempt would exceed a limit, the handler fails now
// instead of waiting for it.
func (l Limits) again(err error, delay time.Duration, ordinary bool) Outcome {
	switch {
	case l.Policy.Timeout != nil && max(delay, 0) >= *l.Policy.Timeout-l.Runtime:
		return Outcome{Final: true, Err: l.tooLate(err, ordinary)}
	case l.Policy.Retries != nil && l.Retries+1 >= *l.Policy.Retries:
		return Outcome{Final: true, Err: l.tooOften(err, ordinary)}
	case delay < 0:
		return Outcome{Err: err}
	default:
		return Outcome{Err: err, Delay: &delay}
	}
}

func (l Limits) mode() handlers.ErrorsMode {
	if l.Policy.Errors != handlers.ErrorsDefault {
		return l.Policy.Errors
	}
	return l.Mode
}

func (l Limits) backoff() time.Duration {
	switch {
	case l.Policy.Backoff != nil:
		return *l.Policy.Backoff
	case l.Backoff == 0:
		return DefaultBackoff
	default:
		return max(l.Backoff, 0)
	}
}

// IsPermanent tells whether the error forbids retries by its own word. A temporary error around it allows them again.
func IsPermanent(err error) bool {
	var temp temporary
	return isPermanent(err) && (!errors.As(err, &temp) || !overrules(temp))
}

// RetryAfter is the delay that the error asks for by its own word, negative for none; false if it does not, or if it is
// a permanent one as well.
func RetryAfter(err error) (time.Duration, bool) {
	var temp temporary
	if !errors.As(err, &temp) || IsPermanent(err) {
		return 0, false
	}
	return temp.RetryAfter(), true
}

// ByBackoff reports whether a temporary error leaves its delay to the backoff of the handler.
func ByBackoff(err error) bool {
	var temp temporary
	if !errors.As(err, &temp) {
		return false
	}
	lenient, ok := temp.(interface{ ByBackoff() bool })
	return ok && lenient.ByBackoff()
}

// overrules tells whether the temporary error wraps the permanent one.
func overrules(temp temporary) bool {
	err, ok := temp.(error)
	return ok && isPermanent(errors.Unwrap(err))
}

func isPermanent(err error) bool {
	var perm permanent
	if errors.As(err, &perm) && perm.Permanent() {
		return true
	}
	return errors.Is(err, reconcile.TerminalError(nil))
}

// Undecodable tells whether the error says that a function cannot get the object as it is, such as an object that does
// not decode into the function's Go type: a retry is useless until the object changes.
func Undecodable(err error) bool {
	var bad interface{ Undecodable() bool }
	return errors.As(err, &bad) && bad.Undecodable()
}
