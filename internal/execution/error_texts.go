package execution

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// RecordText returns the error text for the record of the handler: our own, or Kopf's if kopf is true and the error has
// one. Logs always have our own text.
func (o Outcome) RecordText(kopf bool) string {
	var worded interface {
		error
		kopfText() string
	}
	// If an error of the user wraps ours with another text, that text counts.
	text := o.Err.Error()
	if kopf && errors.As(o.Err, &worded) && worded.Error() == text {
		return worded.kopfText()
	}
	return text
}

// timeoutError returns the error of a handler that cannot be called any more because of its timeout.
func (l Limits) timeoutError() error {
	return &limitError{limit: ErrTimeout, text: "timed out after " + formatShort(l.Runtime),
		kopfMessage: l.kopfTimedOut()}
}

// InterruptedError returns the timeout error of a function that was cancelled at its deadline. Err is the function's
// own error.
func (l Limits) InterruptedError(err error) error {
	text := "timed out after " + formatShort(l.Runtime)
	if err != nil {
		text += ": " + err.Error()
	}
	return &limitError{limit: ErrTimeout, err: err, text: text, kopfMessage: l.kopfTimedOut()}
}

// retriesError returns the error of a handler that cannot be called any more because of its retries.
func (l Limits) retriesError() error {
	return &limitError{
		limit: ErrRetries, text: "gave up after " + formatAttempts(l.Retries),
		kopfMessage: fmt.Sprintf("Handler '%s' has exceeded %d retries.", l.ID, l.Retries),
	}
}

// willTimeOutError returns the error of a handler whose next attempt would come after its timeout.
func (l Limits) willTimeOutError(err error, ordinary bool) error {
	format := "Handler '%s' failed temporarily but will time out after %s seconds: %s"
	if ordinary {
		format = "Handler '%s' failed with an exception and will stop now " +
			"(it would time out in %s seconds on the next attempt): %s"
	}
	limit, text := *l.Policy.Timeout, err.Error()
	return &limitError{
		limit: ErrTimeout, err: err,
		text:        fmt.Sprintf("gave up, as the next attempt would be after the timeout of %s: %s", limit, text),
		kopfMessage: fmt.Sprintf(format, l.ID, strconv.FormatFloat(limit.Seconds(), 'f', -1, 64), text),
	}
}

// willExceedRetriesError returns the error of a handler whose last attempt has failed.
func (l Limits) willExceedRetriesError(err error, ordinary bool) error {
	format := "Handler '%s' failed temporarily but will exceed %d retries: %s"
	if ordinary {
		format = "Handler '%s' failed with an exception and will stop now " +
			"(it would exceed %d retries on the next attempt): %s"
	}
	text := err.Error()
	return &limitError{
		limit: ErrRetries, err: err, text: fmt.Sprintf("gave up after %s: %s", formatAttempts(l.Retries+1), text),
		kopfMessage: fmt.Sprintf(format, l.ID, *l.Policy.Retries, text),
	}
}

// formatAttempts returns the count with its noun.
func formatAttempts(count int) string {
	if count == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", count)
}

// formatShort formats a duration in milliseconds: more digits do not help readers.
func formatShort(d time.Duration) string { return d.Round(time.Millisecond).String() }

// kopfTimedOut returns Kopf's message for a timeout before an attempt.
func (l Limits) kopfTimedOut() string {
	return fmt.Sprintf("Handler '%s' has timed out after %s.", l.ID, formatTimedelta(l.Runtime))
}

// formatTimedelta formats a duration as Python's timedelta does: 0:01:40, or 1 day, 0:00:00.500000.
func formatTimedelta(d time.Duration) string {
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
