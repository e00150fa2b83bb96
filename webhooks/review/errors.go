package review

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// ResponseError is the error of a request that does not get a review as its response.
type ResponseError struct {
	// Status is the HTTP status of the response: 400 for an invalid request, 404 for a resource without handlers, 409
	// for a resource that is served several times, 413 for a review that is too large to be decoded, 503 if the client
	// no longer waits, and 500 otherwise.
	Status int
	// Err is sent to the client as text.
	Err error
	// IsRetryable asks the client to send the request again. API servers do so until their own timeout.
	IsRetryable bool
}

// Error returns the text of the error.
func (e *ResponseError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *ResponseError) Unwrap() error { return e.Err }

// checkStillAwaited returns an error if the client no longer waits for the response. Call it before each step that may
// take long: its result would be discarded.
func checkStillAwaited(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return &ResponseError{Status: http.StatusServiceUnavailable, Err: fmt.Errorf(
		"the client does not wait for the answer any more: %w", context.Cause(ctx))}
}

// StatusOf returns the HTTP status of an error of a review.
func StatusOf(err error) int {
	var known *ResponseError
	if errors.As(err, &known) {
		return known.Status
	}
	return http.StatusInternalServerError
}
