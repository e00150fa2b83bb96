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
)

// longest is how long a server can make us wait.
const longest = 10 * time.Minute

// retryAfter is the header by which a server says when it wants to be asked again.
const retryAfter = "Retry-After"

// Transport repeats requests after connection errors, timeouts, and the statuses 403, 429 and 5xx. All others are
// answers. It may be used concurrently.
type Transport struct {
	// Next sends the requests.
	Next http.RoundTripper
	// Backoffs are the delays between the attempts: there is one attempt more. Kopf: networking.error_backoffs.
	Backoffs []time.Duration
	// Obey takes the server's Retry-After of a 429 even if that is shorter than the backoff. Kopf:
	// networking.enforce_retry_after.
	Obey bool
}

// RoundTrip gives the last answer, or the last error.
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	for attempt := 0; ; attempt++ {
		response, err := t.Next.RoundTrip(request)
		if !passing(response, err) || request.Context().Err() != nil || request.Body != nil && request.GetBody == nil {
			return response, err
		}
		if attempt >= len(t.Backoffs) {
			return final(response), exhausted(attempt+1, err)
		}
		delay := t.delay(attempt, response)
		logf.FromContext(
			request.Context(),
		).Info("Request to the API server failed; repeating it", "method", request.Method, "path", request.URL.Path,
			"attempt", attempt+1, "reason", reason(response, err), "after", delay.String())
		if !wait(request, delay) {
			return response, err
		}
		drop(response)
		if request, err = again(request); err != nil {
			return nil, err
		}
	}
}

// passing tells whether another attempt could end otherwise.
func passing(response *http.Response, err error) bool {
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

// delay is the backoff, or what the server wants.
func (t *Transport) delay(attempt int, response *http.Response) time.Duration {
	delay := t.Backoffs[attempt]
	if response == nil || response.StatusCode != http.StatusTooManyRequests {
		return delay
	}
	if wanted, said := wish(response); said && (t.Obey || wanted > delay) {
		return wanted
	}
	return delay
}

// wish is when the server wants to be asked again: by the header, or by the details of the answer, which stays
// readable.
func wish(response *http.Response) (time.Duration, bool) {
	if seconds, err := strconv.ParseFloat(response.Header.Get(retryAfter), 64); err == nil && seconds >= 0 {
		return time.Duration(int64(min(seconds, longest.Seconds()))) * time.Second, true
	}
	data, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(data))
	var status metav1.Status
	if err != nil || json.Unmarshal(
		data, &status,
	) != nil || status.Details == nil || status.Details.RetryAfterSeconds == 0 {
		return 0, false
	}
	return min(time.Duration(status.Details.RetryAfterSeconds)*time.Second, longest), true
}

// final takes away what would make the client repeat the request once more by itself.
func final(response *http.Response) *http.Response {
	if response != nil {
		response.Header.Del(retryAfter)
	}
	return response
}

// retold are errors by which the client above knows that it should begin all over again: by their texts.
var retold = strings.NewReplacer("connection reset by peer", "the connection was reset by the peer",
	"use of closed network connection",
	"the network connection is closed", "server sent GOAWAY and closed", "server said GOAWAY and closed")

// exhausted hides what an error is from the client above, which would begin all over again after some of them.
func exhausted(attempts int, err error) error {
	if err == nil || attempts == 1 {
		return err
	}
	return errors.New(strconv.Itoa(attempts) + " attempts have failed: " + retold.Replace(err.Error()))
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

func drop(response *http.Response) {
	if response != nil {
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
}

// again is the same request once more.
func again(request *http.Request) (*http.Request, error) {
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
