package transport

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// retryAfter is the header with the number of seconds that a client should wait.
	retryAfter = "Retry-After"
	// longestRetryAfter limits the delay that a server can request.
	longestRetryAfter = 10 * time.Minute
	// maxRefusalSize limits the bytes that are read of a refusal, which may be any text of a proxy.
	maxRefusalSize = 64 << 10
)

// RetryAfter returns the delay that the API server requests in this error, up to longestRetryAfter; zero if it requests
// none.
func RetryAfter(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return min(time.Duration(max(seconds, 0))*time.Second, longestRetryAfter)
}

// retryAfterIn reads the requested delay from the header, or else from the Status in the body. The body remains
// readable for the caller.
func retryAfterIn(response *http.Response) (time.Duration, bool) {
	seconds, err := strconv.ParseFloat(response.Header.Get(retryAfter), 64)
	if err == nil && seconds >= 0 {
		// Fractions of a second are dropped.
		return time.Duration(min(seconds, longestRetryAfter.Seconds())) * time.Second, true
	}
	// Without the header, the delay may be in the Status. Put the body back after reading it.
	data, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(data))
	var refusal apierrors.StatusError
	if err != nil || json.Unmarshal(data, &refusal.ErrStatus) != nil {
		return 0, false
	}
	delay := RetryAfter(&refusal)
	return delay, delay > 0
}

// exceedsDeadline reports whether the request's deadline passes before the delay is over.
func exceedsDeadline(r *http.Request, delay time.Duration) bool {
	deadline, limited := r.Context().Deadline()
	return limited && delay >= time.Until(deadline)
}

// withoutVainWait changes a response that requests another attempt after the deadline of the request. Client-go would
// wait until the deadline, and return an error that only says that it has passed. So the delay is moved from the header
// to the Status in the body: client-go then gives up at once, and its error has both the status and the delay.
func withoutVainWait(r *http.Request, response *http.Response) *http.Response {
	seconds, err := strconv.Atoi(response.Header.Get(retryAfter)) // client-go ignores fractions
	seconds = min(seconds, 1<<30)
	code := response.StatusCode
	refused := code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
	// Only these responses make client-go wait and repeat the request.
	if err != nil || !refused || !exceedsDeadline(r, time.Duration(seconds)*time.Second) {
		return response
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusalSize))
	_ = response.Body.Close()
	data, err := json.Marshal(postponedStatus(r, code, text, seconds))
	if err != nil {
		data = text
	}
	// The body has changed, and with it the length and the type.
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	response.Header.Del(retryAfter)
	response.Header.Del("Content-Length")
	response.Header.Set("Content-Type", "application/json")
	return response
}

// postponedStatus returns the Status of a refusal, with the delay added. A body that is not a Status becomes its
// message.
func postponedStatus(r *http.Request, code int, text []byte, seconds int) metav1.Status {
	var status metav1.Status
	if err := json.Unmarshal(text, &status); err != nil || status.Kind != "Status" {
		status = apierrors.NewGenericServerResponse(
			code, r.Method, schema.GroupResource{}, "", string(text), seconds, true,
		).Status()
	}
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	if status.Details == nil {
		status.Details = &metav1.StatusDetails{}
	}
	status.Details.RetryAfterSeconds = int32(seconds) //nolint:gosec // it is limited
	return status
}
