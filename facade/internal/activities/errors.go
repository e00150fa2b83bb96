package activities

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
)

// errNoTime is the cause of an interruption that happens early: the next attempt would begin after the deadline.
var errNoTime = errors.New("no time is left for another attempt")

// InterruptedError reports that an activity was stopped before all of its handlers were finished: its context ended, a
// handler did not return at its timeout, or there was no time for another attempt.
type InterruptedError struct {
	// Activity is the name of the activity.
	Activity string
	// AbandonedHandler is the id of a handler that did not return in time and may still be running; empty if all have
	// returned.
	AbandonedHandler string
	// Failures joins the errors of the handlers that had already failed permanently; nil if there are none.
	Failures error

	unfinished []string // ids with their last errors, as text
	cause      error    // why the activity was stopped
}

// Error names the unfinished handlers with their last errors, and the abandoned handler.
func (e *InterruptedError) Error() string {
	text := fmt.Sprintf("%s: %s; not finished: %s", e.Activity, e.cause, strings.Join(e.unfinished, ", "))
	if e.AbandonedHandler != "" {
		text += fmt.Sprintf("; handler %q is abandoned: it does not return though its context has ended",
			e.AbandonedHandler)
	}
	if e.Failures != nil {
		text += "\n" + e.Failures.Error()
	}
	return text
}

// Unwrap returns the cause of the interruption, and the failures.
func (e *InterruptedError) Unwrap() []error { return []error{e.cause, e.Failures} }

// IsOnlyInterrupted reports whether time was the only problem: no handler has failed, and none was abandoned.
func (e *InterruptedError) IsOnlyInterrupted() bool {
	return e.AbandonedHandler == "" && e.Failures == nil
}

// interruptedError returns the error of a run that ends before its handlers are finished. If the context has not ended,
// the cause is the timeout of the abandoned handler, or that there is no time for another attempt.
func (r *activityRun) interruptedError(ctx context.Context, abandoned string) error {
	err := &InterruptedError{
		Activity: r.activity.Name, AbandonedHandler: abandoned, Failures: r.joinFailures(), cause: context.Cause(ctx),
	}
	switch {
	case err.cause != nil:
	case abandoned != "":
		err.cause = execution.ErrTimeout
	default:
		err.cause = errNoTime
	}
	for _, s := range r.unfinishedSteps() {
		text := fmt.Sprintf("%q", s.handlerID())
		if s.err != nil {
			text += fmt.Sprintf(" (%v)", s.err)
		}
		err.unfinished = append(err.unfinished, text)
	}
	return err
}

// joinFailures joins the errors of all handlers that have failed permanently; nil if there are none.
func (r *activityRun) joinFailures() error {
	var failed []error
	for _, s := range r.steps {
		if s.failed {
			failed = append(failed, fmt.Errorf("%s: handler %q failed: %w", r.activity.Name, s.handlerID(), s.err))
		}
	}
	return errors.Join(failed...)
}
