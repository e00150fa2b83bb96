package background_test

import (
	"errors"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/background"
)

// TestReasons shows how the reason to stop is named, as in Kopf, and which error is the cause of the end of the
// context.
func TestReasons(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		of     background.StopReason
		text   string
		cause  error
	}{
		"None": {"a handler that does not have to stop has no error", 0, "", nil},
		"Unmatched": {"an object that does not match any more ends as unmatched", background.Unmatched,
			"FILTERS_MISMATCH", execution.ErrUnmatched},
		"Deleted": {"a deleted object ends as deleted", background.Deleted, "RESOURCE_DELETED", execution.ErrDeleted},
		"Pausing": {"a pause ends as paused", background.Pausing, "OPERATOR_PAUSING", execution.ErrPaused},
		"Exiting": {"an exit ends as exiting", background.Exiting, "OPERATOR_EXITING", execution.ErrExiting},
		"Stages": {
			"the stages of stopping have no error", background.Signalled | background.Cancelled | background.Abandoned,
			"DAEMON_SIGNALLED,DAEMON_CANCELLED,DAEMON_ABANDONED", nil,
		},
		"DeletedInPause": {
			"a deletion counts more than a pause", background.Pausing | background.Deleted,
			"RESOURCE_DELETED,OPERATOR_PAUSING", execution.ErrDeleted,
		},
		"UnmatchedAtTheEnd": {
			"an exit counts more than an object that does not match", background.Exiting | background.Unmatched,
			"FILTERS_MISMATCH,OPERATOR_EXITING", execution.ErrExiting,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.of.String(); got != tc.text {
				t.Errorf("got %q, want %q", got, tc.text)
			}
			if got := tc.of.CancelCause(); !errors.Is(got, tc.cause) {
				t.Errorf("%s: got %v, want %v", tc.reason, got, tc.cause)
			}
		})
	}
}
