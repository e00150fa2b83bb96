package resync_test

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/resync"
)

// TestRequests shows that requesting a resync does not block, and that one resync serves all requests before it.
func TestRequests(t *testing.T) {
	requests := resync.NewRequests()
	received := func() (n int) {
		for {
			select {
			case <-requests:
				n++
			default:
				return n
			}
		}
	}
	if got := received(); got != 0 {
		t.Errorf("got %d requests before the first", got)
	}
	for range 3 {
		requests.RequestResync()
	}
	if got := received(); got != 1 {
		t.Errorf("got %d requests, want one for all", got)
	}
	requests.RequestResync()
	if got := received(); got != 1 {
		t.Errorf("got %d requests, want another one for the later request", got)
	}
}

// TestBackoff shows that an unreachable API server is asked quickly at first, and then every 30 seconds.
func TestBackoff(t *testing.T) {
	backoff := resync.Backoff()
	for attempt, want := range []float64{1, 2, 4, 8, 16, 30, 30, 30} {
		if got := backoff.Step(); got.Seconds() != want {
			t.Errorf("before attempt %d: got a delay of %s, want %v seconds", attempt+2, got, want)
		}
	}
}
