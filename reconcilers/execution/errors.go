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

var (
	// ErrTimeout is what the permanent error of a handler beyond its timeout is, by errors.Is. It is also the
	// cancellation cause of the running function. Kopf: HandlerTimeoutError.
	ErrTimeout = errors.New("the handler has timed out")
	// ErrRetries is what the permanent error of a handler that has used up its attempts is. Kopf: HandlerRetriesError.
	ErrRetries = errors.New("the handler has used up its retries")
)

// limitError is the error of a handler that has reached a limit: ErrTimeout or ErrRetries.
type limitError struct {
	limit      error
	text, kopf string
	err        error // of the last attempt; nil if there was none
}

func (e *limitError) Error() string { return e.text }

func (e *limitError) kopfText() string { return e.kopf }

func (e *limitError) Unwrap() error { return e.err }

func (e *limitError) Is(target error) bool { return target == e.limit }

// Permanent is true: the handler is not tried again.
func (e *limitError) Permanent() bool { return true }

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
