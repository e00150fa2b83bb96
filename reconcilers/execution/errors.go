package execution

import (
	"errors"
	"time"

	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// These are the cancellation causes of running functions when the operator exits, or pauses.
var (
	ErrExiting = errors.New("the operator is exiting")
	ErrPaused  = errors.New("the operator is paused")
)

// These are further cancellation causes of background handlers: the object is deleted, or does not match the filters
// any more.
var (
	ErrDeleted   = errors.New("the object is deleted")
	ErrUnmatched = errors.New("the object does not match the filters any more")
)

// ErrTimeout is the cancellation cause of a running function at the deadline of its handler. A [TimeoutError] is one.
var ErrTimeout = errors.New("the handler has timed out")

// ErrRetries is what a [RetriesError] is.
var ErrRetries = errors.New("the handler has used up its retries")

// TimeoutError is the permanent error of a handler beyond its timeout. Kopf: HandlerTimeoutError.
type TimeoutError struct {
	text, kopf string
	err        error
}

// Error says which time is over.
func (e *TimeoutError) Error() string { return e.text }

func (e *TimeoutError) kopfText() string { return e.kopf }

// Unwrap gives the error of the last attempt, if there was one.
func (e *TimeoutError) Unwrap() error { return e.err }

// Is reports whether the target is ErrTimeout.
func (e *TimeoutError) Is(target error) bool { return target == ErrTimeout }

// Permanent is true: the handler is not tried again.
func (e *TimeoutError) Permanent() bool { return true }

// RetriesError is the permanent error of a handler that used up its attempts. Kopf: HandlerRetriesError.
type RetriesError struct {
	text, kopf string
	err        error
}

// Error says how many attempts there were.
func (e *RetriesError) Error() string { return e.text }

func (e *RetriesError) kopfText() string { return e.kopf }

// Unwrap gives the error of the last attempt, if there was one.
func (e *RetriesError) Unwrap() error { return e.err }

// Is reports whether the target is ErrRetries.
func (e *RetriesError) Is(target error) bool { return target == ErrRetries }

// Permanent is true: the handler is not tried again.
func (e *RetriesError) Permanent() bool { return true }

// PendingError is the error of a function whose sub-handlers are not all finished, or that waits for a child. It is no
// failure: the function is called again, whatever its limits are. Kopf: HandlerChildrenRetry.
type PendingError struct {
	// Delay is how long the nearest of the sub-handlers sleeps, or the wait may take.
	Delay time.Duration
	// Awaited is the child that the function itself waits for; without an end, it is one of them that does. Then the
	// attempt does not count.
	Awaited progress.Wait
}

// Error says what the function waits for.
func (e *PendingError) Error() string {
	if !e.Awaited.Until.IsZero() {
		return "waits for " + e.Awaited.Child
	}
	return "the sub-handlers are not all finished"
}

func (e *PendingError) kopfText() string { return "None" }

// RetryAfter makes it a temporary error.
func (e *PendingError) RetryAfter() time.Duration { return e.Delay }
