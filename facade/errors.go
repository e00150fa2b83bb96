package kopf

import (
	"errors"
	"fmt"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// The causes with which the context of a running function is cancelled: ask context.Cause.
var (
	// ErrExiting: the operator stops. An error that the function returns does not count, and it is
	// called again by the next operator; nil is a success.
	ErrExiting = execution.ErrExiting
	// ErrDeleted: the object is gone, or another one has its name. Nothing that the function asks for is written. It is
	// found out at the next write, such as a Flush, not at once.
	ErrDeleted = changes.ErrDeleted
	// ErrUnmatched: the object of a daemon or timer is not selected any more.
	ErrUnmatched = execution.ErrUnmatched
	// ErrPaused: the operator pauses, as another one with a higher priority runs.
	ErrPaused = execution.ErrPaused
	// ErrTimeout: the handler's [Timeout] is over. With an error, the handler has failed for good; nil is a success
	// still.
	ErrTimeout = execution.ErrTimeout
)

// ErrRetries is for errors.Is: the error of a handler that has used up its [Retries], such as the one that
// [Operator.Run] returns for a startup, or the outcome of a call in a test. It wraps the error of the last call. The
// error of a handler that ended by its [Timeout] is an [ErrTimeout] likewise. Kopf: HandlerRetriesError,
// HandlerTimeoutError.
var ErrRetries = execution.ErrRetries

// ErrorsMode says what an ordinary error of a handler means: one that is neither [Temporary] nor [Permanent].
// Kopf: ErrorsMode.
type ErrorsMode = handlers.ErrorsMode

// The modes of errors, for [Errors].
const (
	// ErrorsTemporary tries the handler again after the backoff; the default. Kopf: ErrorsMode.TEMPORARY.
	ErrorsTemporary = handlers.ErrorsTemporary
	// ErrorsPermanent fails the handler for good. Kopf: ErrorsMode.PERMANENT.
	ErrorsPermanent = handlers.ErrorsPermanent
	// ErrorsIgnored takes the error for a success without a result. Kopf: ErrorsMode.IGNORED.
	ErrorsIgnored = handlers.ErrorsIgnored
)

// ErrNoResult says that a handler has left no result on the object: see [Result].
var ErrNoResult = errors.New("there is no such result on the object: its handler has not succeeded yet, or sets none")

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

// Temporaryf is [Temporary] of an error with this text, which wraps others by %w:
//
//	return kopf.Temporaryf(10*time.Second, "the volume of %s: %w", c.Object.Name, err)
func Temporaryf(delay time.Duration, format string, args ...any) error {
	return &temporaryError{err: fmt.Errorf(format, args...), delay: delay}
}

// Permanent makes an error one after which the handler is not called again: it has failed for good, and others go on.
// It wraps the error, and is never nil: for a nil one, its text says that no reason is given. The change counts as
// handled nevertheless: see [Change].Old. Kopf: PermanentError.
func Permanent(err error) error {
	return &permanentError{orNoReason(err)}
}

// Permanentf is [Permanent] of an error with this text, which wraps others by %w.
func Permanentf(format string, args ...any) error {
	return &permanentError{fmt.Errorf(format, args...)}
}

// IsPermanent tells whether a handler that returns the error has failed for good by that alone, whatever its options
// are: it is, or wraps, a [Permanent] one or another of that kind, see [ChangeFunc]; and no temporary error is around
// that.
func IsPermanent(err error) bool { return execution.IsPermanent(err) }

// RetryAfter is the delay after which a handler that returns the error is called again: of a [Temporary] error or
// another of that kind, see [ChangeFunc], such as that of [Change.RunSubs]. Zero is at once. It is false for errors
// that leave this to the options of the handler, as [Temporary] without a delay does, for permanent ones, and for nil.
func RetryAfter(err error) (time.Duration, bool) {
	delay, temporary := execution.RetryAfter(err)
	if !temporary || execution.ByBackoff(err) {
		return 0, false
	}
	return max(delay, 0), true
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
