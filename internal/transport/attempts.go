package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/logging"
)

// RequestRetries configures how requests are repeated after connection errors, timeouts, and the statuses 403, 429 and
// 5xx. All other responses are returned at once.
type RequestRetries struct {
	// Backoffs are the delays between attempts, so there is one attempt more. Kopf: networking.error_backoffs.
	Backoffs []time.Duration
	// EnforceRetryAfter waits for the Retry-After of a 429 response even if the backoff is longer. Kopf:
	// networking.enforce_retry_after.
	EnforceRetryAfter bool
}

// WrapRoundTrip wraps next with repetitions. The wrapped function returns the response or the error of the last
// attempt.
func (a RequestRetries) WrapRoundTrip(next RoundTripFunc) RoundTripFunc {
	if len(a.Backoffs) == 0 {
		return next
	}
	return func(request *http.Request) (*http.Response, error) { return a.sendRepeatedly(request, next) }
}

// sendRepeatedly sends the request until it succeeds, fails permanently, or the attempts are used up.
func (a RequestRetries) sendRepeatedly(request *http.Request, next RoundTripFunc) (*http.Response, error) {
	for attempt := 0; ; attempt++ {
		response, err := next(request)
		// A body without GetBody was consumed by the first attempt. A request whose context has ended is not repeated
		// either.
		repeatable := request.Body == nil || request.GetBody != nil
		if !repeatable || !isTransient(response, err) || request.Context().Err() != nil {
			return response, err
		}
		if attempt >= len(a.Backoffs) {
			// Client-go must not repeat the request again, neither because of the header nor of the error.
			return withoutRetryAfter(response), exhaustedError(attempt+1, err)
		}
		delay := a.delayAfter(attempt, response)
		if isThrottled(response) && exceedsDeadline(request, delay) {
			return response, nil // the caller gets the delay of the server in the response
		}
		logging.Warn(logf.FromContext(request.Context()), "Request to the API server failed; repeating it",
			"method", request.Method, "path", request.URL.Path,
			"attempt", attempt+1, "reason", failureReason(response, err), "after", delay.String())
		// If the context ends during the delay, return the last failure: it says more than the context's error.
		if WaitDelay(request.Context(), delay) != nil {
			return response, err
		}
		// The connection can only be reused if the body was read to its end.
		discardBody(response)
		if request, err = cloneRequest(request); err != nil {
			return nil, err
		}
	}
}

// isTransient reports whether another attempt could succeed.
func isTransient(response *http.Response, err error) bool {
	if err != nil {
		return true
	}
	code := response.StatusCode
	return code >= http.StatusInternalServerError || code == http.StatusForbidden || code == http.StatusTooManyRequests
}

// failureReason describes the failure for the log.
func failureReason(response *http.Response, err error) string {
	if err != nil {
		return err.Error()
	}
	return response.Status
}

// delayAfter returns the backoff after an attempt, or the delay that the server requested.
func (a RequestRetries) delayAfter(attempt int, response *http.Response) time.Duration {
	delay := a.Backoffs[attempt]
	if !isThrottled(response) {
		return delay
	}
	// The server's delay replaces a shorter backoff in any case, and a longer one with Obey.
	if asked, ok := retryAfterIn(response); ok && (a.EnforceRetryAfter || asked > delay) {
		return asked
	}
	return delay
}

// isThrottled reports whether the server requested a later attempt.
func isThrottled(response *http.Response) bool {
	return response != nil && response.StatusCode == http.StatusTooManyRequests
}

// withoutRetryAfter removes the header that would make client-go repeat the request as well.
func withoutRetryAfter(response *http.Response) *http.Response {
	if response != nil {
		response.Header.Del(retryAfter)
	}
	return response
}

// errorTextReplacer changes the texts by which client-go recognizes errors that it retries by itself.
var errorTextReplacer = strings.NewReplacer(
	"connection reset by peer", "the connection was reset by the peer",
	"use of closed network connection", "the network connection is closed",
	"server sent GOAWAY and closed", "server said GOAWAY and closed",
)

// exhaustedError returns an error whose type and text client-go does not recognize. Otherwise client-go would multiply
// the attempts by retrying some errors. A single attempt keeps its error, because nothing was repeated here.
func exhaustedError(attempts int, err error) error {
	if err == nil || attempts == 1 {
		return err
	}
	return errors.New(strconv.Itoa(attempts) + " attempts have failed: " + errorTextReplacer.Replace(err.Error()))
}

// discardBody reads and closes the body of a response that is not used.
func discardBody(response *http.Response) {
	if response != nil {
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
}

// cloneRequest copies the request with a fresh body for the next attempt.
func cloneRequest(request *http.Request) (*http.Request, error) {
	next := request.Clone(request.Context())
	if request.GetBody != nil {
		body, err := request.GetBody()
		if err != nil {
			return nil, fmt.Errorf("repeating %s %s: %w", request.Method, request.URL.Path, err)
		}
		next.Body = body
	}
	return next, nil
}

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

// WaitDelay waits for the delay. It returns an error if the context ends first.
func WaitDelay(ctx context.Context, delay time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(delay):
		return nil
	}
}
