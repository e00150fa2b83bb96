package background

import (
	"strings"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// Reason is why a handler has to end, and how far that is: flags. Kopf: stoppers' DaemonStoppingReason.
type Reason uint8

// The flags, with Kopf's names in String.
const (
	// Unmatched: the object left the filters.
	Unmatched Reason = 1 << iota
	// Deleted: the object is being deleted, or is gone.
	Deleted
	// Pausing and Exiting: the operator does.
	Pausing
	Exiting
	// Signalled: the cancellation backoff is running.
	Signalled
	// Cancelled: the context has ended.
	Cancelled
	// Abandoned: nobody waits any more.
	Abandoned
)

var names = []string{
	"FILTERS_MISMATCH", "RESOURCE_DELETED", "OPERATOR_PAUSING", "OPERATOR_EXITING", "DAEMON_SIGNALLED",
	"DAEMON_CANCELLED", "DAEMON_ABANDONED",
}

// String joins the names by commas.
func (r Reason) String() string {
	var all []string
	for i, name := range names {
		if r&(1<<i) != 0 {
			all = append(all, name)
		}
	}
	return strings.Join(all, ",")
}

// Err is the reason as a cancellation cause; nil if there is none yet.
func (r Reason) Err() error {
	switch {
	case r&Deleted != 0:
		return execution.ErrDeleted
	case r&Exiting != 0:
		return execution.ErrExiting
	case r&Pausing != 0:
		return execution.ErrPaused
	case r&Unmatched != 0:
		return execution.ErrUnmatched
	default:
		return nil
	}
}
