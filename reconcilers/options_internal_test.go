package reconcilers

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// TestPlaces shows the fields that the operator writes to, also without a storage of last-handled configurations.
func TestPlaces(t *testing.T) {
	const at = "/metadata/annotations/op.example.org~1"
	bound := Options{Settings: Settings{Prefix: "op.example.org", BoundTo: "op.example.org/handled-uid"}}
	full := bound
	full.Diffbase = diffbase.Annotations{Prefix: "op.example.org"}
	for want, o := range map[string]Options{
		"handling-configuration":                                        {Settings: Settings{Prefix: "op.example.org"}},
		"handled-uid handling-configuration":                            bound,
		"handled-uid handling-configuration last-handled-configuration": full,
	} {
		places, err := o.StoragePointers()
		for i := range places {
			places[i] = strings.TrimPrefix(places[i], at)
		}
		if got := strings.Join(places, " "); got != want || err != nil {
			t.Errorf("the places are %s, want %s; error %v", got, want, err)
		}
	}
}

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
