package kopf

import (
	"fmt"

	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// SubState is the state of a sub-handler.
type SubState string

// The states of sub-handlers.
const (
	// SubPending: not finished, or not called at all.
	SubPending SubState = "pending"
	// SubSucceeded: not called again.
	SubSucceeded SubState = "succeeded"
	// SubFailed: failed permanently.
	SubFailed SubState = "failed"
)

// SubOutcome is the outcome of a sub-handler.
type SubOutcome struct {
	State SubState
	// Message is the last error, cut to 256 bytes; empty after success.
	Message string
	// Retries counts the calls, if it is still stored.
	Retries int
}

// Outcome returns the outcome of a sub-handler by its id, also after a restart. Kopf: none.
func (c *Change[T]) Outcome(id string) SubOutcome {
	record, err := c.record(id)
	if err != nil {
		c.do(func() error {
			return fmt.Errorf("reading the outcome of sub-handler %q of handler %q: %w", id, c.ID, err)
		})
		return SubOutcome{State: SubPending}
	}
	text, retries := ptr.Deref(record.Message, ""), int(ptr.Deref(record.Retries, 0))
	switch {
	case ptr.Deref(record.Failure, false):
		return SubOutcome{State: SubFailed, Message: text, Retries: retries}
	case ptr.Deref(record.Success, false):
		return SubOutcome{State: SubSucceeded, Retries: retries}
	default:
		return SubOutcome{State: SubPending, Message: pendingMessage(text), Retries: retries}
	}
}

// record returns the record of a sub-handler. The function may have returned: its sub-handlers can call it later.
func (c *Change[T]) record(id string) (progress.Record, error) {
	if codec.Calling() {
		panic(errInPatch) // it may be what the engine is writing, while it is the engine that knows
	}
	c.lock()
	defer c.mu.Unlock()
	if c.call.Subs == nil {
		return progress.Record{}, errNoSubs
	}
	return c.call.Subs.Record(id)
}

// pendingMessage leaves out the message of a handler that only waits for its own sub-handlers, in our words or in
// Kopf's.
func pendingMessage(text string) string {
	waits := execution.Outcome{Err: &execution.PendingError{}}
	if text == waits.Text(false) || text == waits.Text(true) {
		return ""
	}
	return text
}
