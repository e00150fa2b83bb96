package activities

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// errNoTime is why nobody waits until the context ends.
var errNoTime = errors.New("no time is left for another attempt")

// InterruptedError is that of an activity whose context ended before all of its handlers were finished.
type InterruptedError struct {
	// Activity is its name.
	Activity string
	// Abandoned is the id of the handler that has not returned in time, and may still be running; empty if there is
	// none.
	Abandoned string
	// Failed joins the errors of the handlers that have failed for good before; nil if there are none.
	Failed error

	unfinished []string // as text
	cause      error
}

// Error names the handlers that are not finished, with their last errors.
func (e *InterruptedError) Error() string {
	text := fmt.Sprintf("%s: %s; not finished: %s", e.Activity, e.cause, strings.Join(e.unfinished, ", "))
	if e.Abandoned != "" {
		text += fmt.Sprintf("; handler %q is abandoned: it does not return though its context has ended", e.Abandoned)
	}
	if e.Failed != nil {
		text += "\n" + e.Failed.Error()
	}
	return text
}

// Unwrap gives the cause that the context ended for, and the failures.
func (e *InterruptedError) Unwrap() []error { return []error{e.cause, e.Failed} }

// Graceful tells whether nothing is wrong but that there was not enough time.
func (e *InterruptedError) Graceful() bool { return e.Abandoned == "" && e.Failed == nil }

// interrupted is the error of a run whose context has ended.
func (r *running) interrupted(ctx context.Context, abandoned string) error {
	err := &InterruptedError{
		Activity: r.activity.Name, Abandoned: abandoned, Failed: r.failure(), cause: context.Cause(ctx),
	}
	switch {
	case err.cause != nil:
	case abandoned != "":
		err.cause = execution.ErrTimeout
	default:
		err.cause = errNoTime
	}
	for _, s := range r.unfinished() {
		text := fmt.Sprintf("%q", s.id())
		if s.err != nil {
			text += fmt.Sprintf(" (%v)", s.err)
		}
		err.unfinished = append(err.unfinished, text)
	}
	return err
}

// failure joins the errors of all handlers that have failed for good.
func (r *running) failure() error {
	var failed []error
	for _, s := range r.steps {
		if s.failed {
			failed = append(failed, fmt.Errorf("%s: handler %q failed: %w", r.activity.Name, s.id(), s.err))
		}
	}
	return errors.Join(failed...)
}
