package facade

import (
	"fmt"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// Retries sets how many times the handler is called at most for one cause; when they are used up, it has failed for
// good. Default: without a limit. Kopf: retries=.
func Retries(n int) LimitOption {
	o := option{name: "Retries", set: func(h *handlers.Handler) { h.Policy.Retries = &n }}
	if n < 1 {
		o.err = fmt.Errorf("Retries(%d): it counts the calls, so it must be at least 1", n)
	}
	return o
}

// Timeout sets when the handler has failed for good, counted from the moment it was first due for the cause: waits
// between attempts and downtimes of the operator are included. A call that is running then is cancelled with
// [ErrTimeout]. Default: none; a call that never ends holds one of the [Workers] for ever then. Kopf: timeout=, which
// does not cancel.
func Timeout(limit time.Duration) LimitOption {
	o := option{name: "Timeout", set: func(h *handlers.Handler) { h.Policy.Timeout = &limit }}
	if limit <= 0 {
		o.err = fmt.Errorf("Timeout(%s): it must be positive", limit)
	}
	return o
}

// Backoff sets the delay after an ordinary error; that of a [Temporary] error is its own. Default: that of the
// operator, see [DefaultBackoff]. Kopf: backoff=.
func Backoff(delay time.Duration) LimitOption {
	o := option{name: "Backoff", set: func(h *handlers.Handler) { h.Policy.Backoff = &delay }}
	if delay < 0 {
		o.err = fmt.Errorf("Backoff(%s): it must not be negative", delay)
	}
	return o
}

// Errors sets what an ordinary error means. Default: [ErrorsTemporary]. Kopf: errors=.
func Errors(mode ErrorsMode) LimitOption {
	o := option{name: "Errors", set: func(h *handlers.Handler) { h.Policy.Errors = mode }}
	switch mode {
	case ErrorsTemporary, ErrorsPermanent, ErrorsIgnored:
	default:
		o.err = fmt.Errorf("Errors(%d): it must be ErrorsTemporary, ErrorsPermanent or ErrorsIgnored", mode)
	}
	return o
}

// Optional makes a delete handler ask for no finalizer. It is called only where something else of the operator holds
// the object: another delete handler, which is not optional, a daemon or a timer. Objects that nothing holds go without
// it. Kopf: optional=True.
func Optional() DeleteOption {
	return option{name: "Optional", set: func(h *handlers.Handler) { h.Optional = true }}
}

// EvenIfDeleted makes a resume handler take part in the deletion of an object that was being deleted when the operator
// started. Kopf: deleted=True.
func EvenIfDeleted() ResumeOption {
	return option{name: "EvenIfDeleted", set: func(h *handlers.Handler) { h.EvenIfDeleted = true }}
}
