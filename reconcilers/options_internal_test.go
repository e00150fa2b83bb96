package reconcilers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/memory"
)

func TestDefaultSettings(t *testing.T) {
	defaults := Options{}.settings()
	if got := defaults.Workers; got != DefaultWorkers {
		t.Errorf("workers by default: got %d", got)
	}
	if d := cmp.Diff(memory.DefaultErrorDelays, defaults.ErrorDelays); d != "" {
		t.Errorf("error delays by default: -want, +got:\n%s", d)
	}
	own := Options{Workers: 1, ErrorDelays: []time.Duration{}}.settings()
	if own.Workers != 1 {
		t.Errorf("one worker: got %d", own.Workers)
	}
	if own.ErrorDelays == nil || len(own.ErrorDelays) > 0 {
		t.Errorf("no delays replace the default, too: got %v", own.ErrorDelays)
	}
}
