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
	// retryAfter is the header in which a server says how many seconds a client should wait.
	retryAfter = "Retry-After"
	// longestRetryAfter limits the delay that a server can ask for.
	longestRetryAfter = 10 * time.Minute
	// longestRefusal limits how much is read of an answer that is not a Status.
	longestRefusal = 64 << 10
)

// RetryAfter returns the delay that the API server asks for in this error; zero if it does not.
func RetryAfter(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return min(time.Duration(max(seconds, 0))*time.Second, longestRetryAfter)
}

// retryAfterOf reads the delay that the server asks for from the header.
func retryAfterOf(response *http.Response) (time.Duration, bool) {
	seconds, err := strconv.ParseFloat(response.Header.Get(retryAfter), 64)
	if err == nil && seconds >= 0 {
		return time.Duration(min(seconds, 1<<30)) * time.Second, true
	}
	return 0, false
}

// retryAfterIn reads the delay from the header, or from the Status in the body, which stays readable for the caller.
func retryAfterIn(response *http.Response) (time.Duration, bool) {
	if delay, asked := retryAfterOf(response); asked {
		return min(delay, longestRetryAfter), true
	}
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

// isInVain reports whether the deadline of the request is over when the delay is.
func isInVain(r *http.Request, delay time.Duration) bool {
	deadline, limited := r.Context().Deadline()
	return limited && delay >= time.Until(deadline)
}

// withoutVainWait changes an answer that asks for another attempt after the deadline of the request. Client-go would
// wait until the deadline, and its error would only say that it has passed. The delay moves from the header to the
// Status in the body: client-go gives up at once, and its error has both the status and the delay.
func withoutVainWait(r *http.Request, response *http.Response) *http.Response {
	seconds, err := strconv.Atoi(response.Header.Get(retryAfter)) // client-go ignores fractions
	seconds = min(seconds, 1<<30)
	code := response.StatusCode
	refused := code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
	if err != nil || !refused || !isInVain(r, time.Duration(seconds)*time.Second) {
		return response
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, longestRefusal))
	_ = response.Body.Close()
	data, err := json.Marshal(postponed(r, code, text, seconds))
	if err != nil {
		data = text
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	response.Header.Del(retryAfter)
	response.Header.Del("Content-Length")
	response.Header.Set("Content-Type", "application/json")
	return response
}

// postponed is the Status of an answer with this text, and with the delay.
func postponed(r *http.Request, code int, text []byte, seconds int) metav1.Status {
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
