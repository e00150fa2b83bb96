package transport

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
)

// Attempts say how requests are repeated after connection errors, timeouts, and the statuses 403, 429 and 5xx. All
// other responses are returned at once.
type Attempts struct {
	// Backoffs are the delays between the attempts; so there is one attempt more. Kopf: networking.error_backoffs.
	Backoffs []time.Duration
	// Obey waits as long as Retry-After of a 429 says even if the backoff is longer. Kopf:
	// networking.enforce_retry_after.
	Obey bool
}

// Around repeats requests. It gives the response or the error of the last attempt.
func (a Attempts) Around(next RoundTripFunc) RoundTripFunc {
	if len(a.Backoffs) == 0 {
		return next
	}
	return func(request *http.Request) (*http.Response, error) { return a.send(request, next) }
}

func (a Attempts) send(request *http.Request, next RoundTripFunc) (*http.Response, error) {
	for attempt := 0; ; attempt++ {
		response, err := next(request)
		repeatable := request.Body == nil || request.GetBody != nil
		if !repeatable || !transient(response, err) || request.Context().Err() != nil {
			return response, err
		}
		if attempt >= len(a.Backoffs) {
			return withoutRetryAfter(response), exhausted(attempt+1, err)
		}
		delay := a.delay(attempt, response)
		if isThrottled(response) && isInVain(request, delay) {
			return response, nil // it has the delay, and is for the caller
		}
		logging.Warn(logf.FromContext(request.Context()), "Request to the API server failed; repeating it",
			"method", request.Method, "path", request.URL.Path,
			"attempt", attempt+1, "reason", reason(response, err), "after", delay.String())
		if sleep(request.Context(), delay) != nil {
			return response, err
		}
		discard(response)
		if request, err = cloned(request); err != nil {
			return nil, err
		}
	}
}

// transient tells whether another attempt could succeed.
func transient(response *http.Response, err error) bool {
	if err != nil {
		return true
	}
	code := response.StatusCode
	return code >= http.StatusInternalServerError || code == http.StatusForbidden || code == http.StatusTooManyRequests
}

func reason(response *http.Response, err error) string {
	if err != nil {
		return err.Error()
	}
	return response.Status
}

// delay is the backoff after an attempt, or the delay that the server asks for.
func (a Attempts) delay(attempt int, response *http.Response) time.Duration {
	delay := a.Backoffs[attempt]
	if !isThrottled(response) {
		return delay
	}
	if asked, ok := retryAfterIn(response); ok && (a.Obey || asked > delay) {
		return asked
	}
	return delay
}

// isThrottled reports whether the server asks for an attempt later.
func isThrottled(response *http.Response) bool {
	return response != nil && response.StatusCode == http.StatusTooManyRequests
}

// withoutRetryAfter removes the header that would make client-go repeat the request again.
func withoutRetryAfter(response *http.Response) *http.Response {
	if response != nil {
		response.Header.Del(retryAfter)
	}
	return response
}

// rewording changes the texts by which client-go recognises errors after which it repeats the request by itself.
var rewording = strings.NewReplacer(
	"connection reset by peer", "the connection was reset by the peer",
	"use of closed network connection", "the network connection is closed",
	"server sent GOAWAY and closed", "server said GOAWAY and closed",
)

// exhausted hides the type and the text of an error from client-go, which would repeat the request after some errors.
func exhausted(attempts int, err error) error {
	if err == nil || attempts == 1 {
		return err
	}
	return errors.New(strconv.Itoa(attempts) + " attempts have failed: " + rewording.Replace(err.Error()))
}

func discard(response *http.Response) {
	if response != nil {
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
}

// cloned copies the request with a fresh body.
func cloned(request *http.Request) (*http.Request, error) {
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
