package tracing

import (
	"errors"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
)

// isPendingError reports whether the error only means that the handler waits, for its sub-handlers or for a child.
func isPendingError(err error) bool {
	var waits *execution.PendingError
	return errors.As(err, &waits)
}

// errorTypeOf returns the Go type of the innermost error, or "panic". A span does not contain the text of an error,
// because the text may quote secrets that the handler has read.
func errorTypeOf(err error) string {
	var panicked *panics.PanicError
	if errors.As(err, &panicked) {
		return "panic"
	}
	return panics.InnermostType(err)
}
