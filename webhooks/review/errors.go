package review

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// Error is a review that cannot be answered.
type Error struct {
	// Status is the HTTP status to answer with: 400 for a bad request, 404 for a resource that no handler reviews, 409
	// for one that is served more than once, 413 for one that is too heavy to be decoded, 503 for one that the client
	// does not wait for any more, 500 for the rest.
	Status int
	err    error
}

// Error says what is wrong.
func (e *Error) Error() string { return e.err.Error() }

// Unwrap gives the error below.
func (e *Error) Unwrap() error { return e.err }

// awaited returns an error if the client does not wait for the answer any more. It is called before each step that may
// take long.
func awaited(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return &Error{http.StatusServiceUnavailable, fmt.Errorf(
		"the client does not wait for the answer any more: %w", context.Cause(ctx))}
}

// StatusOf is the HTTP status of an error of a review.
func StatusOf(err error) int {
	var known *Error
	if errors.As(err, &known) {
		return known.Status
	}
	return http.StatusInternalServerError
}
