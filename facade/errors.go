package kopf

import (
	"errors"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/nested"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// Errors for errors.Is. The first five are causes of a cancelled context: ask context.Cause.
var (
	// ErrExiting: the operator stops. The error that the function returns does not count; it is called again by the next
	// operator. Nil is a success.
	ErrExiting = execution.ErrExiting
	// ErrDeleted: the object is gone, or was created again. Its patches are not written. It is noticed at the next write,
	// such as [Change.Flush].
	ErrDeleted = changes.ErrDeleted
	// ErrUnmatched: the object of a daemon or timer is not selected any more.
	ErrUnmatched = execution.ErrUnmatched
	// ErrPaused: the operator pauses because a peer with a higher priority runs.
	ErrPaused = execution.ErrPaused
	// ErrTimeout: the [Timeout] of the handler is over. An error then is a permanent failure, nil is still a success.
	// Kopf: HandlerTimeoutError.
	ErrTimeout = execution.ErrTimeout
	// ErrRetries is wrapped by the error of a handler that has used up its [Retries]. Kopf: HandlerRetriesError.
	ErrRetries = execution.ErrRetries
	// ErrNoResult: the object has no result of the handler, see [Result].
	ErrNoResult = errors.New("there is no such result on the object: its handler has not succeeded yet, or sets none")
	// ErrNoValue: the object has nothing at the path, see [GetField].
	ErrNoValue = nested.ErrNoValue
	// ErrWaitTimeout: the time of [WaitFor] is over.
	ErrWaitTimeout = errors.New("the wait is over")
	// ErrKeepEntries is returned by an index function to keep the entries of the object as they are, see [NewIndex].
	ErrKeepEntries = errors.New("the entries of the object stay as they are")
)

// ErrorsMode says what an ordinary error of a handler means: one that is neither [Temporary] nor [Permanent].
// Kopf: ErrorsMode.
type ErrorsMode int

// The modes of errors, for [Errors].
const (
	// ErrorsTemporary tries the handler again after the backoff; the default. Kopf: ErrorsMode.TEMPORARY.
	ErrorsTemporary ErrorsMode = ErrorsMode(handlers.ErrorsTemporary)
	// ErrorsPermanent fails the handler for good. Kopf: ErrorsMode.PERMANENT.
	ErrorsPermanent ErrorsMode = ErrorsMode(handlers.ErrorsPermanent)
	// ErrorsIgnored takes the error for a success without a result. Kopf: ErrorsMode.IGNORED.
	ErrorsIgnored ErrorsMode = ErrorsMode(handlers.ErrorsIgnored)
)

// errNoReason stands for a nil error: the handler asked for a failure, and gets one.
var errNoReason = errors.New("no reason is given: the error was nil")

// Temporary makes an error one after which the handler is called again when the delay is over, at once if that is zero
// or less. Without a delay, it is the [Backoff] of the handler: by default, that of the operator, which is 60 seconds.
// It wraps the error, and is never nil: for a nil one, its text says that no reason is given. Of several delays, the
// first counts.
//
// A delay above zero and below a millisecond is a number without a unit, such as 30 for 30*time.Second: one second is
// taken in its place, and the log says so once for each handler.
//
// It wins over the option [Errors] and the backoff, but not over [Retries] and [Timeout]: they also end a handler that
// could only be called too late. Kopf: TemporaryError, where the delay is 60 seconds by default.
func Temporary(err error, delay ...time.Duration) error {
	temporary := &temporaryError{err: orNoReason(err), byBackoff: len(delay) == 0}
	if len(delay) > 0 {
		temporary.delay = delay[0]
	}
	return temporary
}

// Permanent makes an error one after which the handler is not called again: it has failed for good, and others go on.
// It wraps the error, and is never nil: for a nil one, its text says that no reason is given. The change counts as
// handled nevertheless: see [Change].Old. Kopf: PermanentError.
func Permanent(err error) error {
	return &permanentError{orNoReason(err)}
}

func orNoReason(err error) error {
	if err == nil {
		return errNoReason
	}
	return err
}

type temporaryError struct {
	err       error
	delay     time.Duration
	byBackoff bool // there is no delay: it is the backoff of the handler
}

// ByBackoff reports whether the delay is the backoff of the handler; the engine asks for it by this method.
func (e *temporaryError) ByBackoff() bool { return e.byBackoff }

func (e *temporaryError) Error() string { return e.err.Error() }

func (e *temporaryError) Unwrap() error { return e.err }

// RetryAfter is the delay; the engine knows the error by this method.
func (e *temporaryError) RetryAfter() time.Duration {
	if e.unitless() {
		return unitlessDelay
	}
	return e.delay
}

// unitlessDelay stands for delays that cannot be meant.
const unitlessDelay = time.Second

// unitless tells whether the delay is a number for which a unit was forgotten.
func (e *temporaryError) unitless() bool { return e.delay > 0 && e.delay < shortest }

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }

func (e *permanentError) Unwrap() error { return e.err }

// Permanent is true; the engine knows the error by this method.
func (e *permanentError) Permanent() bool { return true }
