package kopf

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// Errors for errors.Is. The first five are causes of a context, see context.Cause.
var (
	// ErrExiting: the operator stops. Its successor calls the handler again, unless it succeeds.
	ErrExiting = execution.ErrExiting
	// ErrDeleted: the object was deleted or replaced, which a write detects.
	ErrDeleted = execution.ErrDeleted
	// ErrUnmatched: the object is no longer selected.
	ErrUnmatched = execution.ErrUnmatched
	// ErrPaused: the operator pauses, mostly for a peer.
	ErrPaused = execution.ErrPaused
	// ErrTimeout: the [Timeout] is over. An error is permanent, nil a success. Kopf: HandlerTimeoutError.
	ErrTimeout = execution.ErrTimeout
	// ErrRetries: the [Retries] are used up. Kopf: HandlerRetriesError.
	ErrRetries = execution.ErrRetries
	// ErrNoResult: the object does not have this [Result].
	ErrNoResult = errors.New("there is no such result on the object: its handler has not succeeded yet, or sets none")
	// ErrNoValue: the path does not exist, see [GetField].
	ErrNoValue = codec.ErrNoValue
	// ErrWaitTimeout: the limit of [WaitFor] is over.
	ErrWaitTimeout = errors.New("the wait is over")
	// ErrKeepEntries: an index keeps its entries, see [NewIndex].
	ErrKeepEntries = errors.New("the entries of the object stay as they are")
)

// ErrorsMode is the meaning of an ordinary error, neither [Temporary] nor [Permanent]. Kopf: ErrorsMode.
type ErrorsMode int

// Modes for [Errors].
const (
	// ErrorsTemporary retries after the [Backoff]; the default. Kopf: ErrorsMode.TEMPORARY.
	ErrorsTemporary ErrorsMode = ErrorsMode(handlers.ErrorsTemporary)
	// ErrorsPermanent fails permanently. Kopf: ErrorsMode.PERMANENT.
	ErrorsPermanent ErrorsMode = ErrorsMode(handlers.ErrorsPermanent)
	// ErrorsIgnored is a success without a result. Kopf: ErrorsMode.IGNORED.
	ErrorsIgnored ErrorsMode = ErrorsMode(handlers.ErrorsIgnored)
)

// errNoReason replaces a nil error in Temporary and Permanent. The handler has returned a failure, so it must not count
// as a success.
var errNoReason = errors.New("no reason is given: the error was nil")

// Temporary returns an error after which the handler is called again when the delay is over. Default: the [Backoff], 60
// seconds. [Retries] and [Timeout] still apply. It wraps err and is never nil. Kopf: TemporaryError.
func Temporary(err error, delay ...time.Duration) error {
	temporary := &temporaryError{err: orNoReason(err), usesBackoff: len(delay) == 0}
	if len(delay) > 0 {
		temporary.delay = delay[0]
	}
	return temporary
}

// Permanent returns an error after which the handler is not called again. It wraps err and is never nil. The change
// counts as handled, see [Change].Old. Kopf: PermanentError.
func Permanent(err error) error {
	return &permanentError{orNoReason(err)}
}

// orNoReason returns the error, or errNoReason for nil.
func orNoReason(err error) error {
	if err == nil {
		return errNoReason
	}
	return err
}

// temporaryError is the error of Temporary.
type temporaryError struct {
	err         error
	delay       time.Duration
	usesBackoff bool // no delay was given: use the backoff of the handler
}

// ByBackoff reports whether the delay is the backoff of the handler. The engine finds the method by errors.As.
func (e *temporaryError) ByBackoff() bool { return e.usesBackoff }

func (e *temporaryError) Error() string { return e.err.Error() }

func (e *temporaryError) Unwrap() error { return e.err }

// RetryAfter returns the delay. The engine recognizes a temporary error by this method.
func (e *temporaryError) RetryAfter() time.Duration {
	if e.lacksUnit() {
		return delayWithoutUnit
	}
	return e.delay
}

// delayWithoutUnit replaces delays without a unit, such as the 60 nanoseconds of Temporary(err, 60). Without it, the
// handler would run again immediately, in a loop.
const delayWithoutUnit = time.Second

// lacksUnit reports whether the delay is a number without a unit.
func (e *temporaryError) lacksUnit() bool { return e.delay > 0 && e.delay < defaults.MinDuration }

// permanentError is the error of Permanent.
type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }

func (e *permanentError) Unwrap() error { return e.err }

// Permanent returns true. The engine recognizes the error by this method.
func (e *permanentError) Permanent() bool { return true }

// Deny returns an error that rejects an admission request with this code and text; %w wraps errors. Code zero is 500,
// less than 400 becomes 400. Elsewhere it is [Permanent]. Kopf: AdmissionError.
func Deny(code int, format string, args ...any) error {
	if code == 0 {
		code = http.StatusInternalServerError
	}
	return &denialError{fmt.Errorf(format, args...), int32(code)}
}

// denialError is the error of Deny.
type denialError struct {
	err  error
	code int32
}

func (e *denialError) Error() string { return e.err.Error() }

func (e *denialError) Unwrap() error { return e.err }

// Permanent returns true, as in Kopf. The engine recognizes the error by this method.
func (e *denialError) Permanent() bool { return true }

// Status returns the response of API servers to the client.
func (e *denialError) Status() metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Message: e.Error(), Code: e.code}
}
