package explorer_test

import (
	"net/http"
	"testing"
	"time"
)

// A check that cannot fail shows nothing: these operators are wrong, and nobody sees it before they are cut off.
func TestPlantedFaults(t *testing.T) {
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
			peaceful := explore(t, s, course{trouble: trouble{disturbance: nothing}})
			report(t, peaceful)
			found, some := 0, sampled(t, courses(peaceful.reached))
			for _, c := range some {
				if len(explore(t, s, c).violations) > 0 {
					found++
				}
			}
			if found == 0 {
				t.Errorf("no violation in %d courses: %s", len(some), fault.reason)
			}
			t.Logf("%d of %d courses show it", found, len(some))
		})
	}
}
