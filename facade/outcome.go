package kopf

import (
	"fmt"

	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// SubState is what has become of a sub-handler.
type SubState string

// The states of sub-handlers.
const (
	// SubPending: it is not finished. It was not called yet, or is to be called again; or it is not called at all, as
	// it does not match, or is not declared.
	SubPending SubState = "pending"
	// SubSucceeded: it is not called again.
	SubSucceeded SubState = "succeeded"
	// SubFailed: it has failed for good.
	SubFailed SubState = "failed"
)

// SubOutcome is what has come of a sub-handler so far.
type SubOutcome struct {
	// State is never empty.
	State SubState
	// Message is the text of the last error, up to 256 bytes of JSON; empty after a success.
	Message string
	// Retries counts the calls that were made, as far as it is remembered: of a success, the object may keep no more
	// than that there was one.
	Retries int
}

// Outcome is what has come of a sub-handler of this handler for this change. The id is as in c.Sub. It is known after
// RunSubs, and when the handler is called again, also after a restart, before anything is declared: it is read from
// what the object remembers. Of a name that was never declared, nothing has come: it is pending.
//
// A sub-handler may ask the Change of its handler about those before it. A function of Patch that asks fails: take the
// outcome before. Kopf: none.
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

// record is what is known of a sub-handler. The function may have returned: its sub-handlers ask while they run.
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

// pendingMessage leaves out what the record of a handler says that only waits for its own sub-handlers, be it in our
// words or in Kopf's.
func pendingMessage(text string) string {
	waits := execution.Outcome{Err: &execution.PendingError{}}
	if text == waits.Text(false) || text == waits.Text(true) {
		return ""
	}
	return text
}
