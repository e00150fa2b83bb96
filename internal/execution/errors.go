package execution

import (
	"errors"
	"time"

	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// These are the cancellation causes of running functions when the operator exits or pauses.
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
	// ErrTimeout matches, by errors.Is, the permanent error of a handler that exceeded its timeout. It is also the
	// cancellation cause of the running function. Kopf: HandlerTimeoutError.
	ErrTimeout = errors.New("the handler has timed out")
	// ErrRetries matches the permanent error of a handler that has used up its attempts. Kopf: HandlerRetriesError.
	ErrRetries = errors.New("the handler has used up its retries")
)

// limitError is the permanent error of a handler that has reached a limit: ErrTimeout or ErrRetries.
type limitError struct {
	limit             error
	text, kopfMessage string // text is for logs and our records; kopf is the message that Kopf would record
	err               error  // the error of the last attempt; nil if there was none
}

func (e *limitError) Error() string { return e.text }

func (e *limitError) kopfText() string { return e.kopfMessage }

func (e *limitError) Unwrap() error { return e.err }

func (e *limitError) Is(target error) bool { return target == e.limit }

// Permanent returns true: the handler is not retried.
func (e *limitError) Permanent() bool { return true }

// PendingError is the error of a function that waits for a child, or whose sub-handlers are unfinished. It is not a
// failure: the function is called again, and its limits do not apply. Kopf: HandlerChildrenRetry.
type PendingError struct {
	// Delay is the time until the first of the sub-handlers is due, or the longest duration of the wait.
	Delay time.Duration
	// Wait is the child that the function waits for; the attempt then does not count as a retry. Without an end, it
	// is the child of a waiting sub-handler.
	Wait progress.Wait
}

// Error describes the wait.
func (e *PendingError) Error() string {
	if !e.Wait.Until.IsZero() {
		return "waits for " + e.Wait.Child
	}
	return "the sub-handlers are not all finished"
}

// kopfText returns Kopf's record of a pending function: its error does not have a text.
func (e *PendingError) kopfText() string { return "None" }

// RetryAfter makes the error a temporary one.
func (e *PendingError) RetryAfter() time.Duration { return e.Delay }
