package execution

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// ErrExiting is the cancellation cause of a running function when the operator exits.
var ErrExiting = errors.New("the operator is exiting")

// These are further cancellation causes of background handlers: the object is deleted, does not match the filters any
// more, or the operator pauses.
var (
	ErrDeleted   = errors.New("the object is deleted")
	ErrUnmatched = errors.New("the object does not match the filters any more")
	ErrPaused    = errors.New("the operator is paused")
)

// ErrTimeout is the cancellation cause of a running function at the deadline of its handler.
var ErrTimeout = errors.New("the handler has timed out")

// TimeoutError is the permanent error of a handler beyond its timeout. Kopf: HandlerTimeoutError.
type TimeoutError struct {
	text string
	err  error
}

// Error gives the text as Kopf words it: it stands in the records on the object.
func (e *TimeoutError) Error() string { return e.text }

// Unwrap gives the error of the last attempt, if there was one.
func (e *TimeoutError) Unwrap() error { return e.err }

// Permanent is true: the handler is not tried again.
func (e *TimeoutError) Permanent() bool { return true }

// RetriesError is the permanent error of a handler that used up its attempts. Kopf: HandlerRetriesError.
type RetriesError struct {
	text string
	err  error
}

// Error gives the text as Kopf words it: it stands in the records on the object.
func (e *RetriesError) Error() string { return e.text }

// Unwrap gives the error of the last attempt, if there was one.
func (e *RetriesError) Unwrap() error { return e.err }

// Permanent is true: the handler is not tried again.
func (e *RetriesError) Permanent() bool { return true }

// PendingError is the error of a function whose sub-handlers are not all finished. It is no failure: the function is
// called again, whatever its limits are. Kopf: HandlerChildrenRetry.
type PendingError struct {
	// Delay is how long the nearest of the sub-handlers sleeps.
	Delay time.Duration
}

// Error is Kopf's text: it stands in the records on the object.
func (e *PendingError) Error() string { return "None" }

// RetryAfter makes it a temporary error.
func (e *PendingError) RetryAfter() time.Duration { return e.Delay }

// Interrupted is the timeout error of a function that was cancelled at its deadline.
func (l Limits) Interrupted(err error) error {
	return &TimeoutError{
		err: err, text: fmt.Sprintf("Handler '%s' has timed out after %s.", l.ID, clockTime(l.Runtime)),
	}
}

// plainSeconds formats a number of seconds without an exponent.
func plainSeconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }

// clockTime formats a duration as Python's timedelta does: 0:01:40, or 1 day, 0:00:00.500000.
func clockTime(d time.Duration) string {
	d = d.Round(time.Microsecond)
	days, rest := d/(24*time.Hour), d%(24*time.Hour)
	text := fmt.Sprintf("%d:%02d:%02d", rest/time.Hour, rest%time.Hour/time.Minute, rest%time.Minute/time.Second)
	if fraction := rest % time.Second; fraction > 0 {
		text += fmt.Sprintf(".%06d", fraction/time.Microsecond)
	}
	switch {
	case days == 1:
		return "1 day, " + text
	case days > 1:
		return fmt.Sprintf("%d days, %s", days, text)
	default:
		return text
	}
}
