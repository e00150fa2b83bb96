package repeating

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/rawclient"
)

// retryAfter is the header in which a server says how many seconds a client should wait.
const retryAfter = "Retry-After"

// Transport repeats requests after connection errors, timeouts, and the statuses 403, 429 and 5xx. It returns all other
// responses at once. It may be used concurrently.
type Transport struct {
	// Next sends the requests.
	Next http.RoundTripper
	// Backoffs are the delays between the attempts; so there is one attempt more. Kopf: networking.error_backoffs.
	Backoffs []time.Duration
	// Obey waits as long as Retry-After of a 429 says even if the backoff is longer. Kopf:
	// networking.enforce_retry_after.
	Obey bool
}

// RoundTrip gives the response or the error of the last attempt.
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	for attempt := 0; ; attempt++ {
		response, err := t.Next.RoundTrip(request)
		repeatable := request.Body == nil || request.GetBody != nil
		if !repeatable || !transient(response, err) || request.Context().Err() != nil {
			return response, err
		}
		if attempt >= len(t.Backoffs) {
			return withoutRetryAfter(response), exhausted(attempt+1, err)
		}
		delay := t.delay(attempt, response)
		if inVain(request, response, delay) {
			return response, nil
		}
		logging.Warn(logf.FromContext(request.Context()), "Request to the API server failed; repeating it",
			"method", request.Method, "path", request.URL.Path,
			"attempt", attempt+1, "reason", reason(response, err), "after", delay.String())
		if !wait(request, delay) {
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
func (t *Transport) delay(attempt int, response *http.Response) time.Duration {
	delay := t.Backoffs[attempt]
	if response == nil || response.StatusCode != http.StatusTooManyRequests {
		return delay
	}
	if asked, ok := retryAfterOf(response); ok && (t.Obey || asked > delay) {
		return asked
	}
	return delay
}

// inVain tells whether the server asks for an attempt after the deadline of the request. Its answer has the delay, and
// is for the caller.
func inVain(request *http.Request, response *http.Response, delay time.Duration) bool {
	deadline, limited := request.Context().Deadline()
	return response != nil && response.StatusCode == http.StatusTooManyRequests && limited &&
		delay > time.Until(deadline)
}

// retryAfterOf reads the delay that the server asks for from the header, or from the Status in the body, which stays
// readable for the caller.
func retryAfterOf(response *http.Response) (time.Duration, bool) {
	if seconds, err := strconv.ParseFloat(response.Header.Get(retryAfter), 64); err == nil && seconds >= 0 {
		return time.Duration(int64(min(seconds, rawclient.LongestRetryAfter.Seconds()))) * time.Second, true
	}
	data, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(data))
	var status metav1.Status
	if err != nil || json.Unmarshal(data, &status) != nil {
		return 0, false
	}
	if status.Details == nil || status.Details.RetryAfterSeconds == 0 {
		return 0, false
	}
	return min(time.Duration(status.Details.RetryAfterSeconds)*time.Second, rawclient.LongestRetryAfter), true
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

func wait(request *http.Request, delay time.Duration) bool {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-request.Context().Done():
		return false
	case <-timer.C:
		return true
	}
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
