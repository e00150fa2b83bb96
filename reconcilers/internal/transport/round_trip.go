package transport

import (
	"cmp"
	"context"
	"net/http"
	"time"
)

// RoundTripFunc is a function that implements http.RoundTripper.
type RoundTripFunc func(*http.Request) (*http.Response, error)

var _ http.RoundTripper = RoundTripFunc(nil)

// RoundTrip calls f.
func (f RoundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Wrap returns a copy of the client whose requests pass through the functions on their way to its transport. The last
// function is the outermost one, and gets a request first.
func Wrap(client *http.Client, around ...func(next RoundTripFunc) RoundTripFunc) *http.Client {
	own := *client
	own.Transport = cmp.Or(client.Transport, http.DefaultTransport)
	for _, wrap := range around {
		own.Transport = wrap(own.Transport.RoundTrip)
	}
	return &own
}

// waitDelay waits for the delay. It returns an error if the context ends first.
func waitDelay(ctx context.Context, delay time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(delay):
		return nil
	}
}
