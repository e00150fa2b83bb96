package timing

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

// retryAfter is the header in which a server says how many seconds a client should wait.
const retryAfter = "Retry-After"

// longestRefusal limits how much is read of an answer that is not a Status.
const longestRefusal = 64 << 10

// withoutVainWait changes an answer that asks for another attempt after the deadline of the request. Client-go would
// wait until the deadline, and its error would only say that it has passed. The delay moves from the header to the
// Status in the body: client-go gives up at once, and its error has both the status and the delay.
func withoutVainWait(r *http.Request, response *http.Response) *http.Response {
	seconds, err := strconv.Atoi(response.Header.Get(retryAfter))
	code := response.StatusCode
	refused := code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
	seconds = min(seconds, 1<<30)
	deadline, limited := r.Context().Deadline()
	if err != nil || !refused || !limited || time.Duration(seconds)*time.Second < time.Until(deadline) {
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
