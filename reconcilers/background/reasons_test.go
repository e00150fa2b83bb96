package background_test

import (
	"errors"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/background"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// What is told of the reason to stop, by Kopf's names and as the cause of the end of the context.
func TestReasons(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		of     background.Reason
		text   string
		cause  error
	}{
		"None":      {"it does not have to stop", 0, "", nil},
		"Unmatched": {"the object went out of sight", background.Unmatched, "FILTERS_MISMATCH", execution.ErrUnmatched},
		"Deleted":   {"there will be no object", background.Deleted, "RESOURCE_DELETED", execution.ErrDeleted},
		"Pausing":   {"another operator works", background.Pausing, "OPERATOR_PAUSING", execution.ErrPaused},
		"Exiting":   {"no operator works", background.Exiting, "OPERATOR_EXITING", execution.ErrExiting},
		"Stages": {
			"they are no causes", background.Signalled | background.Cancelled | background.Abandoned,
			"DAEMON_SIGNALLED,DAEMON_CANCELLED,DAEMON_ABANDONED", nil,
		},
		"DeletedInPause": {
			"there will be no object after the pause", background.Pausing | background.Deleted,
			"RESOURCE_DELETED,OPERATOR_PAUSING", execution.ErrDeleted,
		},
		"UnmatchedAtTheEnd": {
			"the end of the operator is shorter", background.Exiting | background.Unmatched,
			"FILTERS_MISMATCH,OPERATOR_EXITING", execution.ErrExiting,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.of.String(); got != tc.text {
				t.Errorf("got %q, want %q", got, tc.text)
			}
			if got := tc.of.Err(); !errors.Is(got, tc.cause) {
				t.Errorf("%s: got %v, want %v", tc.reason, got, tc.cause)
			}
		})
	}
}
