package journal

import (
	"fmt"
	"strings"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
)

// formatTime formats a time for users.
func formatTime(t time.Time) string { return "at " + t.UTC().Format("2006-01-02 15:04:05.000") }

// whyNotCalled says why the handler was not called, as a clause without a full stop.
func (v HandlerVerdict) whyNotCalled() string {
	switch execution.SkipReason(v.Reason) {
	case execution.OtherReason:
		// The operands are reasons of causes.
		if cause.Reason(v.Found) == cause.Noop {
			return fmt.Sprintf("it handles %s, and nothing essential has changed", pluralReason(v.Expected))
		}
		return fmt.Sprintf("it handles %s, and this is %s", pluralReason(v.Expected), singularReason(v.Found))
	case execution.NotInitial:
		return "it handles the objects that existed when the operator started, once each; this one is new, or was " +
			"handled since"
	case execution.BeingDeleted:
		return "the object is being deleted, and the handler was registered without EvenIfDeleted"
	case execution.Unchanged:
		return fmt.Sprintf("field %s has not changed: it is %s", v.Field, v.Found)
	case execution.OtherChange:
		return fmt.Sprintf("field %s has not changed as required: expected %s, found %s", v.Field, v.Expected, v.Found)
	case execution.OtherValue:
		return fmt.Sprintf("field %s does not have the required value: expected %s, found %s",
			v.Field, v.Expected, v.Found)
	case execution.FilteredOut:
		// Without a field, the filter is a function.
		if v.Field == "" {
			return fmt.Sprintf("the function of %s returned false", v.Expected)
		}
		return fmt.Sprintf("its filter %s does not match: found %s", v.Expected, v.Found)
	case execution.Finished:
		return "it is finished with this change: it succeeded, or failed permanently"
	case execution.Asleep:
		if v.Until == nil {
			return "it waits for its next attempt"
		}
		return "it waits for its next attempt, " + formatTime(*v.Until)
	case execution.DependencyUnfinished:
		return "it waits for handlers that are not finished: " + v.Expected
	case execution.Blocked:
		return "it cannot be called with the object, and waits until the object changes"
	case execution.DependencyFailed:
		return "handlers that it depends on failed permanently: " + v.Expected
	case execution.Exceeded:
		return fmt.Sprintf("its limit is reached: %s of %s", v.Found, v.Expected)
	case execution.NotPicked:
		return "it is due, but the lifecycle selected other handlers first"
	default:
		return v.Reason
	}
}

// pluralReason returns the changes that a handler is for, in the plural.
func pluralReason(reason string) string {
	switch cause.Reason(reason) {
	case cause.Create:
		return "creations"
	case cause.Update:
		return "updates"
	case cause.Delete:
		return "deletions"
	default:
		return reason
	}
}

// singularReason returns the cause of an evaluation, in the singular.
func singularReason(reason string) string {
	switch cause.Reason(reason) {
	case cause.Create:
		return "a creation"
	case cause.Update:
		return "an update"
	case cause.Delete:
		return "a deletion"
	case cause.Resume:
		return "a resume without changes"
	case cause.Noop:
		return "no essential change"
	case cause.Free:
		return "a deletion that this operator does not block"
	default:
		return reason
	}
}

// causeText says why the object was looked at.
func (l *Evaluation) causeText() string {
	switch l.Reason {
	case reasonEvent:
		return "an event " + eventWords(l.Type)
	case reasonBackground:
		return "the current state"
	case string(cause.Update):
		return "an update of " + l.changedPathsText()
	default:
		return singularReason(l.Reason)
	}
}

// eventWords names the type of an event; it is empty for the first listing.
func eventWords(eventType string) string {
	if eventType == "" {
		return "of the initial list"
	}
	return eventType
}

// changedPathsText lists the changed paths.
func (l *Evaluation) changedPathsText() string {
	text := strings.Join(l.ChangedPaths, ", ")
	if l.OmittedPathCount > 0 {
		text += fmt.Sprintf(" and %d more", l.OmittedPathCount)
	}
	return text
}

// outcomeText describes the outcome of the call.
func (a *AttemptEntry) outcomeText() string {
	text := fmt.Sprintf("attempt %d %s", a.Number, a.Outcome)
	if a.IsFormer {
		text = "it " + a.Outcome + ", before this process was started"
	}
	if a.Error != "" {
		text += ": " + a.Error
	}
	if a.Next != nil {
		text += "; the next one is due " + formatTime(*a.Next)
	}
	return text
}

// holdText says what blocks the object.
func (h *Hold) holdText() string {
	switch {
	case h.Reason == HeldBlocked:
		return "The object is not handled until it changes: " + h.Error + "."
	case h.Reason == HeldFailure:
		return "The object is kept after " + h.Reason + ": " + h.Error + ". An edit calls the failed handlers again; " +
			"if its finalizer is removed, the object is deleted."
	case h.Reason == HeldPaused:
		return "The object is " + h.Reason + ": " + h.Error + ". No handlers, daemons and timers run for it."
	case h.Until == nil:
		// Throttling without a next attempt waits for an event.
		return "The object is not handled until its next event, after " + h.Reason + ": " + h.Error + "."
	default:
		until := strings.TrimPrefix(formatTime(*h.Until), "at ")
		return "The object is throttled until " + until + ", after " + h.Reason + ": " + h.Error + "."
	}
}
