package resync_test

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/resync"
)

// Whoever requests a resync goes on at once; one resync is enough for all that asked before it.
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
		t.Errorf("got %d requests before any", got)
	}
	for range 3 {
		requests.RequestResync()
	}
	if got := received(); got != 1 {
		t.Errorf("got %d requests, want one for all", got)
	}
	requests.RequestResync()
	if got := received(); got != 1 {
		t.Errorf("got %d requests, want another one for what came after that", got)
	}
}

// An API server that is away for a while is asked often at first, and never less than twice in a minute.
func TestBackoff(t *testing.T) {
	backoff := resync.Backoff()
	for attempt, want := range []float64{1, 2, 4, 8, 16, 30, 30, 30} {
		if got := backoff.Step(); got.Seconds() != want {
			t.Errorf("before attempt %d: got a delay of %s, want %v seconds", attempt+2, got, want)
		}
	}
}
