package explorer_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/explorer"
)

// A check that cannot fail shows nothing: these operators are wrong, and nobody sees it before they are cut off.
func TestPlantedFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	faults := map[string]struct {
		reason string
		plant  func(*scenario)
	}{
		"checkpoint-off": {
			reason: "what a handler did is written when all of them are through, so too much is done again",
			plant:  func(s *scenario) { s.settings.Execution.Checkpoint = time.Hour },
		},
		"status-after-main": {
			reason: "the write that closes a cause is not the last one, so results are lost",
			plant: func(s *scenario) {
				s.through = func(next http.RoundTripper) http.RoundTripper { return &swapped{next: next} }
			},
		},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scenarios["create-with-three"]
			fault.plant(&s)
			report := explorer.Search(t, explored(s), some()...)
			if len(report.Violations) == 0 || report.Violations[0].Course == "uncut" {
				t.Errorf("%s: it was not found, or without a cut:\n%s", fault.reason, report)
			}
			t.Logf("found on %d courses", report.Played)
		})
	}
}
