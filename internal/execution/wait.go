package execution

import "time"

// MarkAwake makes the handler due before its time: the awaited child is ready, or its state must be checked again.
func (e *HandlerState) MarkAwake() { e.awake = true }

// applyWait applies the wait of the outcome. It returns true if the handler itself waits, and not one of its
// sub-handlers: such a wait does not have a message. A wait that an error has interrupted keeps its deadline.
func (e *HandlerState) applyWait(o Outcome, now time.Time) bool {
	// A wait of a sub-handler does not have an end here: the record of the sub-handler has it.
	if o.Wait.Child != "" {
		child, until := o.Wait.Child, o.Wait.Until
		if e.Awaited, e.Until = &child, nil; !until.IsZero() {
			e.Until = &until
		}
	} else if e.IsFinished() || e.Until == nil || !e.Until.After(now) {
		e.Awaited, e.Until = nil, nil
	}
	return !o.Wait.Until.IsZero()
}
