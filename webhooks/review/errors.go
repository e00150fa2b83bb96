package review

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// ResponseError is the error of a review that cannot be answered.
type ResponseError struct {
	// Status is the HTTP status of the response: 400 for an invalid request, 404 for a resource without handlers, 409
	// for a resource that is served several times, 413 for a review that is too large to be decoded, 503 if the client
	// no longer waits, and 500 otherwise.
	Status int
	// err is sent to the client as text.
	err error
}

// Error returns the text of the error.
func (e *ResponseError) Error() string { return e.err.Error() }

// Unwrap returns the wrapped error.
func (e *ResponseError) Unwrap() error { return e.err }

// checkStillAwaited returns an error if the client no longer waits for the response. Call it before each step that may
// take long: its result would be discarded.
func checkStillAwaited(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return &ResponseError{http.StatusServiceUnavailable, fmt.Errorf(
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
