package tracing

import (
	"errors"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
)

// pending tells whether the error is none: a handler waits for its sub-handlers, or for a child.
func pending(err error) bool {
	var waits *execution.PendingError
	return errors.As(err, &waits)
}

// kindOf is all that a span tells of an error: the Go type of the innermost one, or that it was a panic. A text may
// quote whatever the handler has read, and nobody can tell.
func kindOf(err error) string {
	var panicked *panics.Error
	if errors.As(err, &panicked) {
		return "panic"
	}
	return panics.Type(err)
}
