package explorer_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/explorer"
)

// TestPlantedFaults shows that the checks can fail: these operators have faults that only a cut reveals.
func TestPlantedFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	faults := map[string]struct {
		reason      string
		injectFault func(*scenario)
	}{
		"checkpoint-off": {
			reason:      "results are only saved after the last handler, so too much is repeated",
			injectFault: func(s *scenario) { s.settings.Execution.Checkpoint = time.Hour },
		},
		"status-after-main": {
			reason: "the write that closes a cause is not the last one, so results are lost",
			injectFault: func(s *scenario) {
				s.through = func(next http.RoundTripper) http.RoundTripper { return &reorderedStatus{next: next} }
			},
		},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scenarios["create-with-three"]
			fault.injectFault(&s)
			report := explorer.Search(t, scenarioFactory(s), courseOptions()...)
			if len(report.Violations) == 0 || report.Violations[0].Course == "uncut" {
				t.Errorf("%s: it was not found, or without a cut:\n%s", fault.reason, report)
			}
			t.Logf("found on %d courses", report.Played)
		})
	}
}
