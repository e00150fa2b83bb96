package reconcilers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
)

// TestReplicasNeedNoElection shows that every replica fills its indices, whichever process is the leader.
func TestReplicasNeedNoElection(t *testing.T) {
	if (replica{}).NeedLeaderElection() {
		t.Error("a replica must not wait until it is the leader")
	}
}

func TestDefaultSettings(t *testing.T) {
	defaults := Options{}.withDefaults()
	if got := defaults.Workers; got != kind.DefaultWorkers {
		t.Errorf("want the default number of workers, got %d", got)
	}
	if d := cmp.Diff(kind.DefaultErrorDelays, defaults.ErrorDelays); d != "" {
		t.Errorf("error delays by default: -want, +got:\n%s", d)
	}
	own := Options{Settings: Settings{Workers: 1, ErrorDelays: []time.Duration{}}}.withDefaults()
	if own.Workers != 1 {
		t.Errorf("want one worker, got %d", own.Workers)
	}
	if own.ErrorDelays == nil || len(own.ErrorDelays) > 0 {
		t.Errorf("empty delays must replace the default, too: got %v", own.ErrorDelays)
	}
}
