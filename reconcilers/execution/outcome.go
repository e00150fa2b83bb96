package execution

import (
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
)

// DefaultBackoff is the delay after an ordinary error where nothing else is said. Kopf: execution.default_backoff.
const DefaultBackoff = 60 * time.Second

// Outcome is what one attempt came to.
type Outcome struct {
	// Final is true if the handler is not called again for this cause, after a success or a failure.
	Final bool
	// Delay is how long to wait for the next attempt; nil is not at all.
	Delay *time.Duration
	// Err is the recorded error; nil is a success if Final.
	Err error
	// Ignored is the error that the handler's mode let pass: it makes a success, but one without a result.
	Ignored error
	// Aborted is true for an attempt that does not count, such as one cut short by the exit of the operator.
	// Such an outcome is not recorded.
	Aborted bool
	// Blocked is true if the attempt was aborted for the object's sake: no use to try again until it changes.
	Blocked bool
	// Subrefs are the ids of the sub-handlers met.
	Subrefs []string
}

// Limits is what an outcome is judged by.
type Limits struct {
	// ID names the handler in messages.
	ID string
	// Policy is the handler's; Mode is for handlers that have none of their own.
	Policy handlers.Policy
	Mode   handlers.ErrorsMode
	// Backoff is the operator's default; zero is DefaultBackoff, a negative one is none at all: try again at once.
	Backoff time.Duration
	// Retries counts the attempts before this one; Runtime is the time since the first selection.
	Retries int
	Runtime time.Duration
}

// temporary is an error that asks to be tried again: a negative delay is none at all.
type temporary interface{ RetryAfter() time.Duration }

// permanent is an error that may forbid to try again.
type permanent interface{ Permanent() bool }

// Exceeded tells whether the handler may not be called any more. Nil means that it may.
func (l Limits) Exceeded() error {
	switch {
	case l.Policy.Timeout != nil && l.Runtime >= *l.Policy.Timeout:
		return &TimeoutError{text: fmt.Sprintf("Handler '%s' has timed out after %s.", l.ID, clockTime(l.Runtime))}
	case l.Policy.Retries != nil && l.Retries >= *l.Policy.Retries:
		return &RetriesError{text: fmt.Sprintf("Handler '%s' has exceeded %d retries.", l.ID, l.Retries)}
	default:
		return nil
	}
}

// Judge turns the error of a call, or nil, into an outcome. Errors are told apart by their behaviour:
// RetryAfter() time.Duration is temporary, Permanent() bool is permanent, as is controller-runtime's terminal error.
// All others are ordinary, and the mode decides. Who wraps an error has the last say on it: a permanent error inside a
// temporary one is temporary.
func (l Limits) Judge(err error) Outcome {
	var temp temporary
	isTemporary := errors.As(err, &temp)
	overruled := isTemporary && overrules(temp)
	switch {
	case err == nil:
		return Outcome{Final: true}
	case isPermanent(err) && !overruled:
		return Outcome{Final: true, Err: err}
	case isTemporary:
		return l.again(err, temp.RetryAfter(), "Handler '%s' failed temporarily but will time out after %s seconds: %s",
			"Handler '%s' failed temporarily but will exceed %d retries: %s")
	default:
		return l.judgeOrdinary(err)
	}
}

// Contain makes an outcome of what a user's function returned. All methods of errors are asked in here: if one of them
// panics, that is the failure of the handler, and the errors in the outcome can be logged and recorded by anybody.
func (l Limits) Contain(judge func() Outcome) (o Outcome) {
	if err := panics.Contain(func() error { o = judge(); return nil }); err != nil {
		o = l.Judge(err)
	}
	o.Err, o.Ignored = panics.Tame(o.Err), panics.Tame(o.Ignored)
	return o
}

func (l Limits) judgeOrdinary(err error) Outcome {
	switch l.mode() {
	case handlers.ErrorsIgnored:
		return Outcome{Final: true, Ignored: err}
	case handlers.ErrorsPermanent:
		return Outcome{Final: true, Err: err}
	default:
		const stop = "Handler '%s' failed with an exception and will stop now "
		return l.again(err, l.backoff(), stop+"(it would time out in %s seconds on the next attempt): %s",
			stop+"(it would exceed %d retries on the next attempt): %s")
	}
}

// again looks ahead: an attempt that could only be refused is not waited for.
func (l Limits) again(err error, delay time.Duration, late, often string) Outcome {
	switch {
	case l.Policy.Timeout != nil && max(delay, 0) >= *l.Policy.Timeout-l.Runtime:
		return Outcome{
			Final: true,
			Err: &TimeoutError{
				err: err, text: fmt.Sprintf(late, l.ID, plainSeconds(*l.Policy.Timeout), panics.Text(err)),
			},
		}
	case l.Policy.Retries != nil && l.Retries+1 >= *l.Policy.Retries:
		return Outcome{
			Final: true,
			Err:   &RetriesError{err: err, text: fmt.Sprintf(often, l.ID, *l.Policy.Retries, panics.Text(err))},
		}
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

// overrules is true if what is permanent stands inside the temporary error.
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

// Undecodable tells whether the error says that the object cannot be shown to a user's function as it is, such as one
// that does not decode into its Go type: no use to try again until somebody changes the object.
func Undecodable(err error) bool {
	var bad interface{ Undecodable() bool }
	return errors.As(err, &bad) && bad.Undecodable()
}
